-- One event is each of some short queries once, as applications send them: one to three rows by a
-- key, with something to do besides. It reads the table that sysbench's own `prepare` makes.

sysbench.cmdline.options = {
   table_size = {"Number of rows in the table", 10000}
}

-- Each takes as many numbers of rows as it has question marks.
local queries = {
   "SELECT c FROM sbtest1 WHERE id = ? AND k > ?",
   "SELECT id, UPPER(c) FROM sbtest1 WHERE id = ? AND pad IS NOT NULL",
   "SELECT a.id, b.c FROM sbtest1 a JOIN sbtest1 b ON b.id = a.k WHERE a.id = ?",
   "SELECT a.id, b.c FROM sbtest1 a LEFT JOIN sbtest1 b ON b.id = a.k AND b.k > ? WHERE a.id = ?",
   "SELECT a.id, b.k, d.c FROM sbtest1 a JOIN sbtest1 b ON b.id = a.k JOIN sbtest1 d ON d.id = b.k WHERE a.id IN (?, ?)",
   "SELECT id, (SELECT b.c FROM sbtest1 b WHERE b.id = a.k) AS c FROM sbtest1 a WHERE a.id = ?",
   "SELECT c FROM sbtest1 WHERE id IN (SELECT k FROM sbtest1 WHERE id = ?)",
   "SELECT c FROM sbtest1 WHERE id = ? UNION ALL SELECT pad FROM sbtest1 WHERE id = ?"
}

local connection
local statements = {}

function thread_init()
   connection = sysbench.sql.driver():connect()
   for at, query in ipairs(queries) do
      local statement = connection:prepare(query)
      local parameters = {}
      for _ in query:gmatch("?") do
         table.insert(parameters, statement:bind_create(sysbench.sql.type.INT))
      end
      statement:bind_param(unpack(parameters))
      statements[at] = {statement = statement, parameters = parameters}
   end
end

function thread_done()
   for _, prepared in ipairs(statements) do
      prepared.statement:close()
   end
   connection:disconnect()
end

function event()
   for _, prepared in ipairs(statements) do
      for _, parameter in ipairs(prepared.parameters) do
         parameter:set(sysbench.rand.default(1, sysbench.opt.table_size))
      end
      prepared.statement:execute()
   end
end
