-- What schemas of applications have: keys of all kinds, generated columns, foreign keys, checks, comments.
SET NAMES utf8mb4;
CREATE TABLE customers (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'the number''s own',
  name VARCHAR(100) NOT NULL DEFAULT '',
  email VARCHAR(255) DEFAULT NULL,
  `group` ENUM('new','old','it''s') NOT NULL DEFAULT 'new',
  flags SET('a','b','c') DEFAULT NULL,
  born DATE DEFAULT NULL,
  changed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  settings LONGTEXT DEFAULT NULL CHECK (JSON_VALID(settings)),
  PRIMARY KEY (id),
  UNIQUE KEY email (email),
  KEY name_born (name(20), born),
  CONSTRAINT name_there CHECK (CHAR_LENGTH(name) > 0)
) ENGINE=InnoDB AUTO_INCREMENT=100 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin COMMENT='who buys; "quoted" \\ and ''so''';

CREATE TABLE orders (
  customer INT UNSIGNED NOT NULL,
  number SMALLINT NOT NULL,
  net DECIMAL(12,2) NOT NULL DEFAULT 0.00,
  tax DECIMAL(4,3) NOT NULL DEFAULT 0.190,
  gross DECIMAL(14,2) GENERATED ALWAYS AS (net * (1 + tax)) STORED,
  label VARCHAR(40) GENERATED ALWAYS AS (CONCAT('order ', number)) VIRTUAL COMMENT 'for people',
  placed DATETIME(6) DEFAULT NULL,
  took TIME DEFAULT NULL,
  year YEAR DEFAULT NULL,
  paid BIT(1) NOT NULL DEFAULT b'0',
  ratio DOUBLE DEFAULT NULL,
  small FLOAT DEFAULT NULL,
  huge BIGINT UNSIGNED DEFAULT NULL,
  scan MEDIUMBLOB DEFAULT NULL,
  hash BINARY(4) DEFAULT NULL,
  PRIMARY KEY (customer, number),
  KEY placed (placed),
  KEY gross (gross),
  CONSTRAINT order_customer FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT tax_sound CHECK (tax >= 0 AND tax < 1)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE `odd ``name`` of-a table` (
  `select` INT NOT NULL,
  `with space` TEXT DEFAULT NULL,
  hidden INT INVISIBLE DEFAULT 7,
  UNIQUE KEY `key of all` (`select`, `with space`(10))
) ENGINE=MyISAM DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE `empty` (a INT) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT INTO customers (id, name, email, `group`, flags, born, changed, settings) VALUES
  (1, 'Änna "the" O''Neil', 'anna@example.com', 'it''s', 'a,c', '1970-02-28', '2026-01-02 03:04:05.678', '{"a": [1, "ü\\n"]}'),
  (2, 'Bob\n\t\\ 😀 %_', NULL, 'new', '', NULL, '2026-01-02 03:04:05.000', NULL),
  (7, 'NULL', '', 'old', NULL, '9999-12-31', '2026-01-02 03:04:06.001', '[]');
INSERT INTO orders (customer, number, net, tax, placed, took, year, paid, ratio, small, huge, scan, hash) VALUES
  (1, 1, 100.00, 0.190, '2026-01-02 03:04:05.678901', '-838:59:59', 2026, b'1', 1.7976931348623157e308, 0.25, 18446744073709551615, x'00FF275C0A0D1A', 'ab'),
  (1, -2, 0.05, 0.000, NULL, '12:00:00', 1901, b'0', 0.1, NULL, 0, '', NULL),
  (7, 32767, -9999999999.99, 0.070, '1000-01-01 00:00:00.000000', NULL, NULL, b'0', -5e-324, 1e10, NULL, NULL, x'00000000');
INSERT INTO `odd ``name`` of-a table` (`select`, `with space`, hidden) VALUES (1, 'a text', 8), (2, NULL, DEFAULT);
