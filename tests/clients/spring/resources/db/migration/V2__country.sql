ALTER TABLE customer ADD COLUMN score INT NOT NULL DEFAULT 0 AFTER country, ADD INDEX customer_country (country, score);
UPDATE customer SET score = 1 WHERE country = 'DE';
INSERT INTO customer (name, email, country, born) VALUES ('Anna', 'anna@example.com', 'AT', '1970-02-28');
