// The checks of tests/clients with go-sql-driver and database/sql.
//
// Each check connects anew, prints one line, and has its name and meaning in common with the other
// clients; tests/clients/README.md says what each of them asks for.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// column is a line of types.tsv.
type column struct {
	name, declared, kind, low, high, lowText, highText string
}

// failure is what a check panics with.
type failure string

var (
	background = context.Background()
	onMariaDB  = os.Getenv("CHECK_SERVER") == "mariadb"
	types      = readTypes()
)

func main() {
	checks := []struct {
		name string
		run  func()
	}{
		{"connect", connect}, {"native_password", nativePassword}, {"tls", overTLS},
		{"socket", socket}, {"types", textTypes}, {"nulls", nulls}, {"metadata", metadata},
		{"prepared", prepared}, {"errors", refusals}, {"transactions", transactions},
		{"several", several}, {"big_result", bigResult}, {"temp_tables", tempTables},
		{"reset", nil}, {"pool", pool},
	}
	failed := false
	for _, check := range checks {
		if check.run == nil {
			fmt.Printf("%s\tskip\tthe driver has no reset\n", check.name)
			continue
		}
		if problem := runOne(check.run); problem != "" {
			failed = true
			fmt.Printf("%s\tFAIL\t%s\n", check.name, strings.Join(strings.Fields(problem), " "))
		} else {
			fmt.Printf("%s\tok\n", check.name)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// runOne says what went wrong in a check.
func runOne(run func()) (problem string) {
	defer func() {
		if reason := recover(); reason != nil {
			problem = fmt.Sprintf("%.300v", reason)
		}
	}()
	run()
	return ""
}

func must(err error) {
	if err != nil {
		panic(failure(err.Error()))
	}
}

func equal(what string, found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(failure(fmt.Sprintf("%s: %#v, expected %#v", what, found, expected)))
	}
}

func readTypes() []column {
	text, err := os.ReadFile(os.Getenv("CHECK_TYPES"))
	must(err)
	var columns []column
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[1:] {
		f := strings.Split(line, "\t")
		columns = append(columns, column{f[0], f[1], f[2], f[4], f[6], f[5], f[7]})
	}
	return columns
}

func names() string {
	var names []string
	for _, column := range types {
		names = append(names, column.name)
	}
	return strings.Join(names, ", ")
}

func config() *mysql.Config {
	config := mysql.NewConfig()
	config.User, config.Passwd = os.Getenv("CHECK_USER"), os.Getenv("CHECK_PASSWORD")
	config.Net = "tcp"
	config.Addr = os.Getenv("CHECK_HOST") + ":" + os.Getenv("CHECK_PORT")
	config.DBName = os.Getenv("CHECK_DATABASE")
	config.ParseTime = true
	return config
}

// open connects once: the pool of database/sql has one connection then, which is handed out.
func open(change func(*mysql.Config)) (*sql.DB, *sql.Conn, error) {
	settings := config()
	if change != nil {
		change(settings)
	}
	connector, err := mysql.NewConnector(settings)
	must(err)
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(1)
	connection, err := pool.Conn(background)
	return pool, connection, err
}

func opened(change func(*mysql.Config)) *sql.Conn {
	_, connection, err := open(change)
	must(err)
	return connection
}

func run(connection *sql.Conn, statement string, arguments ...any) sql.Result {
	result, err := connection.ExecContext(background, statement, arguments...)
	must(err)
	return result
}

// one reads the only row of a query.
func one(connection *sql.Conn, query string, into ...any) {
	must(connection.QueryRowContext(background, query).Scan(into...))
}

// code is the number and the SQLSTATE of an error of the server.
func code(err error) (uint16, string) {
	var refused *mysql.MySQLError
	if !errors.As(err, &refused) {
		panic(failure(fmt.Sprintf("not refused: %v", err)))
	}
	return refused.Number, string(refused.SQLState[:])
}

func refusedLogin(number uint16, change func(*mysql.Config)) {
	_, _, err := open(change)
	found, _ := code(err)
	equal("login", found, number)
}

func connect() {
	for range 2 {
		connection := opened(nil)
		var first int
		var database, user string
		one(connection, "SELECT 1, DATABASE(), CURRENT_USER()", &first, &database, &user)
		equal("database", []any{first, database}, []any{1, os.Getenv("CHECK_DATABASE")})
		equal("user", strings.Split(user, "@")[0], os.Getenv("CHECK_USER"))
		must(connection.PingContext(background))
		must(connection.Close())
	}
	refusedLogin(1045, func(config *mysql.Config) { config.Passwd = "wrong" })
	refusedLogin(1045, func(config *mysql.Config) { config.Passwd = "" })
	refusedLogin(1049, func(config *mysql.Config) { config.DBName = "nowhere" })
}

func nativePassword() {
	native := os.Getenv("CHECK_NATIVE_USER")
	var user string
	one(opened(func(config *mysql.Config) { config.User = native }), "SELECT CURRENT_USER()", &user)
	equal("user", strings.Split(user, "@")[0], native)
	refusedLogin(1045, func(config *mysql.Config) { config.User, config.Passwd = native, "wrong" })
}

func overTLS() {
	authority, err := os.ReadFile(os.Getenv("CHECK_CA"))
	must(err)
	roots := x509.NewCertPool()
	equal("authority", roots.AppendCertsFromPEM(authority), true)
	connection := opened(func(config *mysql.Config) {
		config.TLS = &tls.Config{RootCAs: roots, ServerName: "localhost"}
	})
	var name, cipher string
	one(connection, "SHOW STATUS LIKE 'Ssl_cipher'", &name, &cipher)
	equal("encrypted", cipher != "", true)
}

func socket() {
	connection := opened(func(config *mysql.Config) {
		config.Net, config.Addr = "unix", os.Getenv("CHECK_SOCKET")
	})
	var first int
	one(connection, "SELECT 1", &first)
	equal("row", first, 1)
}

// makeTypes makes a table with a column of each type, with rows of lowest values, highest, and NULLs.
func makeTypes(connection *sql.Conn) {
	var declared, low, high []string
	for _, column := range types {
		declared = append(declared, column.name+" "+column.declared+" NULL")
		low, high = append(low, column.low), append(high, column.high)
	}
	run(connection, "SET time_zone = '+00:00'")
	run(connection, "CREATE TEMPORARY TABLE kept (id INT PRIMARY KEY, "+strings.Join(declared, ", ")+")")
	run(connection, "INSERT INTO kept VALUES (1, "+strings.Join(low, ", ")+")")
	run(connection, "INSERT INTO kept VALUES (2, "+strings.Join(high, ", ")+")")
	run(connection, "INSERT INTO kept (id) VALUES (3)")
}

// shown is the text by which types.tsv knows a value.
func shown(column column, value any) any {
	switch value := value.(type) {
	case nil:
		return nil
	case int64:
		return strconv.FormatInt(value, 10)
	case uint64:
		return strconv.FormatUint(value, 10)
	case float32:
		return strconv.FormatFloat(float64(value), 'g', -1, 32)
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64)
	case time.Time:
		layout := "2006-01-02 15:04:05.999999"
		if column.kind == "date" {
			layout = "2006-01-02"
		}
		return value.Format(layout)
	case string:
		return shown(column, []byte(value))
	case []byte:
		switch column.kind {
		case "bytes", "bits":
			return hex.EncodeToString(value)
		case "time", "long_time":
			text := string(value)
			if strings.Contains(text, ".") {
				text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
			}
			return text
		case "json":
			var document any
			must(json.Unmarshal(value, &document))
			var text bytes.Buffer
			must(json.Compact(&text, value))
			return text.String()
		}
		return string(value)
	}
	panic(failure(fmt.Sprintf("%s: %T", column.name, value)))
}

func checkTypes(rows *sql.Rows) {
	for _, wanted := range []string{"low", "high", "null"} {
		equal("a row", rows.Next(), true)
		values := make([]any, len(types))
		places := make([]any, len(types))
		for at := range values {
			places[at] = &values[at]
		}
		must(rows.Scan(places...))
		for at, column := range types {
			var expected any
			switch wanted {
			case "low":
				expected = column.lowText
			case "high":
				expected = column.highText
			}
			found := shown(column, values[at])
			if text, is := expected.(string); is && column.kind == "float" {
				number, err := strconv.ParseFloat(text, 64)
				must(err)
				parsed, err := strconv.ParseFloat(found.(string), 64)
				must(err)
				equal(column.name, parsed, number)
				continue
			}
			if text, is := expected.(string); is && column.kind == "json" {
				expected = strings.NewReplacer(": ", ":", ", ", ",").Replace(text)
			}
			equal(column.name+" "+wanted, found, expected)
		}
	}
	equal("more rows", rows.Next(), false)
	must(rows.Err())
}

func query(connection *sql.Conn, text string, arguments ...any) *sql.Rows {
	rows, err := connection.QueryContext(background, text, arguments...)
	must(err)
	return rows
}

func textTypes() {
	connection := opened(nil)
	makeTypes(connection)
	checkTypes(query(connection, "SELECT "+names()+" FROM kept ORDER BY id"))
}

func nulls() {
	connection := opened(nil)
	makeTypes(connection)
	for _, column := range types {
		var count, filled, id int
		one(connection, fmt.Sprintf("SELECT COUNT(*), COUNT(%s), MIN(id) FROM kept WHERE %[1]s IS NULL",
			column.name), &count, &filled, &id)
		equal(column.name, []int{count, filled, id}, []int{1, 0, 3})
	}
	var nothing sql.NullString
	var id int
	must(connection.QueryRowContext(background, "SELECT NULL, id FROM kept WHERE age <=> ?", nil).
		Scan(&nothing, &id))
	equal("NULL", []any{nothing.Valid, id}, []any{false, 3})
}

// typeName is what the driver calls a type.
func typeName(column column) string {
	name, _, _ := strings.Cut(column.declared, "(")
	name, isUnsigned := strings.CutSuffix(name, " UNSIGNED")
	if isUnsigned {
		return "UNSIGNED " + name
	}
	switch name {
	case "BOOLEAN":
		return "TINYINT"
	case "TINYTEXT", "MEDIUMTEXT", "LONGTEXT":
		return "TEXT"
	case "TINYBLOB", "MEDIUMBLOB", "LONGBLOB":
		return "BLOB"
	case "JSON":
		if onMariaDB {
			return "TEXT"
		}
	}
	return name
}

func metadata() {
	connection := opened(nil)
	makeTypes(connection)
	told, err := query(connection, "SELECT "+names()+" FROM kept WHERE id = 0").ColumnTypes()
	must(err)
	for at, column := range types {
		equal("name", told[at].Name(), column.name)
		equal(column.name, told[at].DatabaseTypeName(), typeName(column))
		canBeNull, known := told[at].Nullable()
		equal(column.name, []bool{canBeNull, known}, []bool{true, true})
		if strings.HasPrefix(column.declared, "DECIMAL(20") {
			precision, scale, _ := told[at].DecimalSize()
			equal(column.name, []int64{precision, scale}, []int64{20, 4})
		}
	}
	told, err = query(opened(nil), "SELECT 1 AS renamed, NOW(3)").ColumnTypes()
	must(err)
	canBeNull, _ := told[0].Nullable()
	_, scale, _ := told[1].DecimalSize()
	equal("renamed", []any{told[0].Name(), canBeNull, scale}, []any{"renamed", false, int64(3)})
}

func prepared() {
	connection := opened(nil)
	makeTypes(connection)
	run(connection, "CREATE TEMPORARY TABLE again LIKE kept")
	rows := query(connection, "SELECT * FROM kept WHERE id > ? ORDER BY id", 0)
	var kept [][]any
	for rows.Next() {
		values := make([]any, len(types)+1)
		places := make([]any, len(values))
		for at := range values {
			places[at] = &values[at]
		}
		must(rows.Scan(places...))
		kept = append(kept, values)
	}
	must(rows.Err())
	marks := strings.Repeat("?, ", len(types)) + "?"
	insert, err := connection.PrepareContext(background, "INSERT INTO again VALUES ("+marks+")")
	must(err)
	for _, values := range kept {
		result, err := insert.ExecContext(background, values...)
		must(err)
		count, _ := result.RowsAffected()
		equal("count", count, int64(1))
	}
	must(insert.Close())
	checkTypes(query(connection, "SELECT "+names()+" FROM again WHERE id < ? ORDER BY id", 100))

	run(connection, "CREATE TEMPORARY TABLE numbers (id INT PRIMARY KEY, name VARCHAR(20))")
	insert, err = connection.PrepareContext(background, "INSERT INTO numbers VALUES (?, ?)")
	must(err)
	byKey, err := connection.PrepareContext(background, "SELECT name FROM numbers WHERE id = ?")
	must(err)
	for number := range 100 {
		_, err := insert.ExecContext(background, number, fmt.Sprint("n ", number))
		must(err)
		var name string
		must(byKey.QueryRowContext(background, number).Scan(&name))
		equal("name", name, fmt.Sprint("n ", number))
	}
	var count int
	must(connection.QueryRowContext(background,
		"SELECT COUNT(*) FROM numbers WHERE name LIKE ? AND id > ?", "n 1%", 1).Scan(&count))
	equal("count", count, 10)
}

func refusals() {
	connection := opened(nil)
	run(connection, "CREATE TEMPORARY TABLE t (a TINYINT NOT NULL PRIMARY KEY)")
	run(connection, "INSERT INTO t VALUES (1)")
	for _, wanted := range []struct {
		statement string
		number    uint16
		state     string
	}{
		{"SELEC 1", 1064, "42000"}, {"SELECT * FROM nothing", 1146, "42S02"},
		{"SELECT nothing FROM t", 1054, "42S22"}, {"INSERT INTO t VALUES (1)", 1062, "23000"},
		{"INSERT INTO t VALUES (NULL)", 1048, "23000"}, {"INSERT INTO t VALUES (300)", 1264, "22003"},
	} {
		_, err := connection.ExecContext(background, wanted.statement)
		number, state := code(err)
		equal(wanted.statement, []any{number, state}, []any{wanted.number, wanted.state})
	}
	_, err := connection.ExecContext(background, "INSERT INTO t VALUES (?)", 1)
	number, _ := code(err)
	equal("prepared", number, uint16(1062))
	_, err = connection.QueryContext(background, "SELECT nothing FROM t WHERE a = ?", 1)
	number, _ = code(err)
	equal("prepared", number, uint16(1054))
	var kept int
	one(connection, "SELECT a FROM t", &kept)
	equal("row", kept, 1)
}

func transactions() {
	connection := opened(nil)
	run(connection, "CREATE TEMPORARY TABLE t (a INT)")
	for _, way := range []struct {
		options  *sql.TxOptions
		commits  bool
		expected int
	}{
		{nil, true, 2},
		{nil, false, 2},
		{&sql.TxOptions{Isolation: sql.LevelReadCommitted}, true, 4},
		{&sql.TxOptions{ReadOnly: true}, false, 4},
	} {
		transaction, err := connection.BeginTx(background, way.options)
		must(err)
		for _, statement := range []string{
			"INSERT INTO t VALUES (1)", "SAVEPOINT s", "INSERT INTO t VALUES (2)",
			"ROLLBACK TO SAVEPOINT s", "INSERT INTO t VALUES (3)",
		} {
			_, err = transaction.Exec(statement)
			must(err)
		}
		if way.commits {
			must(transaction.Commit())
		} else {
			must(transaction.Rollback())
		}
		var count int
		one(connection, "SELECT COUNT(*) FROM t WHERE a <> 2", &count)
		equal("count", count, way.expected)
	}
}

func several() {
	connection := opened(func(config *mysql.Config) { config.MultiStatements = true })
	rows := query(connection, "CREATE TEMPORARY TABLE t (a INT); INSERT INTO t VALUES (1), (2);"+
		"SELECT a FROM t; SELECT 3")
	var found []int
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			var value int
			must(rows.Scan(&value))
			found = append(found, value)
		}
	}
	must(rows.Err())
	equal("rows", found, []int{1, 2, 3})
}

func bigResult() {
	connection := opened(nil)
	text := "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)" +
		" SELECT a.i * 1000 + b.i, REPEAT('x', 100) FROM n AS a, n AS b"
	for _, arguments := range [][]any{nil, {0}} {
		if arguments != nil {
			text += " WHERE a.i > ?"
		}
		rows := query(connection, text, arguments...)
		count, total := 0, 0
		var number int
		var filling string
		for rows.Next() {
			must(rows.Scan(&number, &filling))
			count, total = count+1, total+number
		}
		must(rows.Err())
		equal("rows", []int{count, total, len(filling)}, []int{160_000, 400 * 1001 * 400 * 401 / 2, 100})
	}
	var long string
	one(connection, "SELECT REPEAT('y', 20000000)", &long)
	equal("length", len(long), 20_000_000)
	var length int
	must(connection.QueryRowContext(background, "SELECT LENGTH(?)", strings.Repeat("z", 20_000_000)).
		Scan(&length))
	equal("length", length, 20_000_000)
	// The driver reads the rest before the connection is used again.
	must(query(connection, text, 0).Close())
	must(connection.PingContext(background))
}

func tempTables() {
	connection := opened(func(config *mysql.Config) { config.ClientFoundRows = true })
	run(connection, "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), KEY (name))")
	id, _ := run(connection, "INSERT INTO t (name) VALUES ('first')").LastInsertId()
	equal("id", id, int64(1))
	insert, err := connection.PrepareContext(background, "INSERT INTO t (name) VALUES (?)")
	must(err)
	for number := range 999 {
		_, err := insert.ExecContext(background, fmt.Sprint("name ", number%10))
		must(err)
	}
	run(connection, "CREATE TEMPORARY TABLE u AS SELECT name, COUNT(*) AS n FROM t GROUP BY name")
	rows := query(connection, "SELECT t.name, n, COUNT(*) FROM t JOIN u USING (name)"+
		" GROUP BY name, n HAVING n < 100 ORDER BY name")
	var found []string
	for rows.Next() {
		var name string
		var count, again int
		must(rows.Scan(&name, &count, &again))
		found = append(found, fmt.Sprint(name, " ", count, " ", again))
	}
	equal("groups", found, []string{"first 1 1", "name 9 99 99"})
	count, _ := run(connection, "UPDATE t SET name = 'first' WHERE id <= 2").RowsAffected()
	equal("found", count, int64(2))
	count, _ = run(connection, "DELETE FROM t WHERE name = ?", "first").RowsAffected()
	equal("deleted", count, int64(2))
	_, err = opened(nil).ExecContext(background, "SELECT * FROM t")
	number, _ := code(err)
	equal("another connection", number, uint16(1146))
	run(connection, "DROP TEMPORARY TABLE t, u")
	_, err = connection.ExecContext(background, "SELECT * FROM t")
	number, _ = code(err)
	equal("dropped", number, uint16(1146))
}

// pool: connections are handed on as they are.
func pool() {
	pool, connection, err := open(nil)
	must(err)
	run(connection, "CREATE TEMPORARY TABLE t (a INT)")
	run(connection, "INSERT INTO t VALUES (1)")
	must(connection.Close())
	var kept int
	must(pool.QueryRow("SELECT a FROM t").Scan(&kept))
	equal("row", kept, 1)
	must(pool.Close())
}
