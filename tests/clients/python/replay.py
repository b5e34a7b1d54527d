"""What programs with windows send: their statements, without the programs."""

import pymysql

import shared

SCHEMA = """
CREATE TABLE author (
  id INT NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'its number',
  name VARCHAR(100) NOT NULL,
  born DATE,
  CONSTRAINT author_name UNIQUE (name)
) COMMENT = 'who writes';
CREATE TABLE book (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  author INT NOT NULL,
  title VARCHAR(200) DEFAULT 'none',
  price DECIMAL(10,2) CHECK (price >= 0),
  gross DECIMAL(12,4) GENERATED ALWAYS AS (price * 1.19) STORED,
  changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id),
  KEY book_author (author, title(20)),
  CONSTRAINT book_of FOREIGN KEY (author) REFERENCES author (id)
);
INSERT INTO author (name, born) VALUES ('Anna', '1970-02-28'), ('Bert', NULL);
INSERT INTO book (author, title, price) VALUES (1, 'first', 10), (1, 'second', 20), (2, NULL, NULL)
"""
VIEW = "CREATE VIEW dear AS SELECT title, price FROM book WHERE price > 15"


class Program:
    """A connection of the program, and what it asks for by names of columns."""

    def __init__(self, **settings):
        self.connection = pymysql.connect(
            host=shared.HOST,
            port=shared.PORT,
            user=shared.USER,
            password=shared.PASSWORD,
            charset="utf8mb4",
            autocommit=True,
            **settings,
        )
        self.cursor = self.connection.cursor()

    def run(self, statement, *values):
        return self.cursor.execute(statement, values or None)

    def ask(self, statement, *values, reads="", least=0):
        """The rows as dictionaries, by names in capitals; `reads` are those that the program takes, and
        `least` is how many rows must be there."""
        self.run(statement, *values)
        names = [column[0].upper() for column in self.cursor.description]
        missing = set(reads.upper().split()) - set(names)
        if missing:
            raise AssertionError(f"{statement} gives no {missing}, but {names}")
        rows = [dict(zip(names, row)) for row in self.cursor.fetchall()]
        if len(rows) < least:
            raise AssertionError(f"{statement} gives {len(rows)} rows, not {least}")
        return rows

    def value(self, statement, *values):
        self.run(statement, *values)
        return self.cursor.fetchone()[0]


def start():
    """Makes the tables that are looked at, in the database of the checks; says whether there is a view among them."""
    program = Program(database=shared.DATABASE)
    for statement in SCHEMA.split(";\n"):
        program.run(statement)
    try:
        program.run(VIEW)
    except pymysql.err.NotSupportedError:
        return False
    finally:
        program.connection.close()
    return True
