-- Flights that left New York in 2013, grouped in less memory than they need.
--
--   cargo run --release --bin mayfly -- sql --memory 64M --stats demo/flights.sql
--
-- 336,776 flights are not many. But put each flight beside every other one that left the same
-- airport in the same hour, and there are 3.2 million meetings of two planes. The statements below
-- group, de-duplicate, unite and sort them. Each needs more than 64 MiB, so each spills: --stats
-- tells how much, and the answers are the same as with --memory 4G.

-- A file is a table. MySQL's dialect: backquotes, DIV, IF, LEFT and the rest.
SELECT origin, COUNT(*) AS flights, COUNT(DISTINCT tailnum) AS planes,
       ROUND(AVG(dep_delay), 1) AS mean_delay_minutes
FROM 'demo/flights.parquet'
GROUP BY origin
ORDER BY origin;

-- A temporary table of all meetings. It is larger than the memory, which changes nothing.
CREATE TEMPORARY TABLE meetings AS
SELECT a.time_hour, a.origin,
       a.tailnum AS plane, b.tailnum AS other,
       a.carrier AS carrier, b.carrier AS other_carrier,
       a.dep_delay AS delay, b.dep_delay AS other_delay
FROM 'demo/flights.parquet' a
JOIN 'demo/flights.parquet' b
  ON a.origin = b.origin AND a.time_hour = b.time_hour AND a.tailnum < b.tailnum;

-- GROUP BY with 1.6 million groups: which two planes meet most often?
SELECT plane, other, COUNT(*) AS times
FROM meetings
GROUP BY plane, other
ORDER BY times DESC, plane, other
LIMIT 5;

-- DISTINCT over 3.2 million rows: how often do two planes meet more than once in a day?
SELECT COUNT(*) AS plane_days,
       (SELECT COUNT(*) FROM meetings) - COUNT(*) AS met_again_that_day
FROM (SELECT DISTINCT plane, other, DATE(time_hour) AS day FROM meetings) AS days;

-- UNION: pairs that ever met at their departure, or flew to the same city in the same hour.
SELECT COUNT(*) AS acquainted
FROM (SELECT plane, other FROM meetings
      UNION
      SELECT a.tailnum, b.tailnum
      FROM 'demo/flights.parquet' a
      JOIN 'demo/flights.parquet' b
        ON a.dest = b.dest AND a.time_hour = b.time_hour AND a.tailnum < b.tailnum) AS pairs;

-- ORDER BY with an offset far inside: the meeting at place 1,500,001 by the delay of both planes.
SELECT delay + other_delay AS minutes_together, plane, other, origin, time_hour
FROM meetings
WHERE delay IS NOT NULL AND other_delay IS NOT NULL
ORDER BY minutes_together, plane, other, time_hour
LIMIT 1 OFFSET 1500000;

-- Few groups cost nothing: which airlines' planes meet, by name.
SELECT x.name AS airline, y.name AS other_airline, pairs.meetings
FROM (SELECT carrier, other_carrier, COUNT(*) AS meetings
      FROM meetings
      GROUP BY carrier, other_carrier) AS pairs
JOIN 'demo/airlines.csv' x ON x.carrier = pairs.carrier
JOIN 'demo/airlines.csv' y ON y.carrier = pairs.other_carrier
ORDER BY pairs.meetings DESC
LIMIT 5;

-- What all this took: temporary tables built, and those that had a page on disk.
SHOW STATUS LIKE 'Created_tmp%tables';
