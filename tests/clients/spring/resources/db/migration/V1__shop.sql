-- As an application writes its first migration.
CREATE TABLE customer (
    id BIGINT NOT NULL AUTO_INCREMENT,
    name VARCHAR(100) NOT NULL,
    email VARCHAR(255) NOT NULL,
    country CHAR(2) NOT NULL DEFAULT 'DE',
    born DATE,
    created DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (id),
    CONSTRAINT customer_email UNIQUE (email)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE purchase (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    version INT NOT NULL DEFAULT 0,
    customer_id BIGINT NOT NULL,
    state ENUM ('DONE', 'OPEN') NOT NULL,
    total DECIMAL(12, 2) NOT NULL,
    placed DATETIME(6) NOT NULL,
    reference BINARY(16),
    note LONGTEXT,
    paid BIT(1) NOT NULL,
    KEY purchase_placed (placed),
    CONSTRAINT purchase_customer FOREIGN KEY (customer_id) REFERENCES customer (id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
