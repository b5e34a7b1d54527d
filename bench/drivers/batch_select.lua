-- One event is one SELECT of many neighbouring rows by primary key, as sysbench's own scripts
-- would do it. It reads the table that their `prepare` makes.

sysbench.cmdline.options = {
   table_size = {"Number of rows in the table", 10000},
   batch_size = {"Number of rows in a batch", 20000}
}

local connection, statement, first, last

function thread_init()
   connection = sysbench.sql.driver():connect()
   statement = connection:prepare("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?")
   first = statement:bind_create(sysbench.sql.type.INT)
   last = statement:bind_create(sysbench.sql.type.INT)
   statement:bind_param(first, last)
end

function thread_done()
   statement:close()
   connection:disconnect()
end

function event()
   local highest = math.max(1, sysbench.opt.table_size - sysbench.opt.batch_size + 1)
   local id = sysbench.rand.default(1, highest)
   first:set(id)
   last:set(id + sysbench.opt.batch_size - 1)
   statement:execute()
end
