import java.io.OutputStream;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLIntegrityConstraintViolationException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.Duration;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;

/**
 * The checks of tests/clients with Connector/J, with its prepared statements on the client's side
 * (as it does by default) and on the server's.
 *
 * Each check connects anew, prints one line, and has its name and meaning in common with the other
 * clients; tests/clients/README.md says what each of them asks for.
 */
public class Checks {
    /** A line of types.tsv. */
    record Column(String name, String declared, String kind, String low, String lowText, String high, String highText) {}

    interface Check {
        void run() throws Exception;
    }

    static final boolean ON_MARIADB = "mariadb".equals(System.getenv("CHECK_SERVER"));
    static final String USER = System.getenv("CHECK_USER");
    static final String NATIVE_USER = System.getenv("CHECK_NATIVE_USER");
    static final String PASSWORD = System.getenv("CHECK_PASSWORD");
    static final String DATABASE = System.getenv("CHECK_DATABASE");
    static final String ON_SERVER = "&useServerPrepStmts=true&cachePrepStmts=true";
    static List<Column> types;
    static String names;

    public static void main(String[] arguments) throws Exception {
        types = Files.readAllLines(Path.of(System.getenv("CHECK_TYPES"))).stream().skip(1)
            .map(line -> line.split("\t", -1))
            .map(f -> new Column(f[0], f[1], f[2], f[4], f[5], f[6], f[7])).toList();
        names = types.stream().map(Column::name).collect(Collectors.joining(", "));
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("connect", Checks::connect);
        checks.put("native_password", Checks::nativePassword);
        checks.put("tls", Checks::tls);
        checks.put("socket", null);
        checks.put("types", Checks::types);
        checks.put("nulls", Checks::nulls);
        checks.put("metadata", Checks::metadata);
        checks.put("prepared", Checks::prepared);
        checks.put("errors", Checks::errors);
        checks.put("transactions", Checks::transactions);
        checks.put("several", Checks::several);
        checks.put("big_result", Checks::bigResult);
        checks.put("temp_tables", Checks::tempTables);
        checks.put("reset", Checks::reset);
        checks.put("pool", null);
        boolean failed = false;
        for (Map.Entry<String, Check> check : checks.entrySet()) {
            String name = check.getKey();
            if (check.getValue() == null) {
                System.out.println(name + "\tskip\tthe driver has no " + name);
                continue;
            }
            try {
                check.getValue().run();
                System.out.println(name + "\tok");
            } catch (Exception | AssertionError error) {
                failed = true;
                String text = String.valueOf(error).replaceAll("\\s+", " ");
                int line = Arrays.stream(error.getStackTrace())
                    .filter(frame -> frame.getClassName().equals("Checks") && !frame.getMethodName().equals("equal"))
                    .mapToInt(StackTraceElement::getLineNumber).findFirst().orElse(0);
                System.out.println(name + "\tFAIL\tline " + line + ": " + text.substring(0, Math.min(text.length(), 300)));
            }
        }
        System.exit(failed ? 1 : 0);
    }

    static void equal(Object found, Object expected, String what) {
        if (!Objects.deepEquals(found, expected)) {
            throw new AssertionError(what + ": " + found + ", expected " + expected);
        }
    }

    static Connection open(String more) throws SQLException {
        return open(USER, PASSWORD, DATABASE, more);
    }

    static Connection open(String user, String password, String database, String more) throws SQLException {
        String tls = more.contains("sslMode") ? "" : "&sslMode=DISABLED";
        String address = "jdbc:mysql://" + System.getenv("CHECK_HOST") + ":" + System.getenv("CHECK_PORT") + "/"
            + database + "?allowPublicKeyRetrieval=true&connectionTimeZone=UTC" + tls + more;
        return DriverManager.getConnection(address, user, password);
    }

    static void run(Connection connection, String statement) throws SQLException {
        try (Statement made = connection.createStatement()) {
            made.execute(statement);
        }
    }

    /** The rows of a query, each as a list of what getObject returns. */
    static List<List<Object>> rows(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet found = statement.executeQuery(query)) {
            return rows(found);
        }
    }

    static List<List<Object>> rows(ResultSet found) throws SQLException {
        List<List<Object>> rows = new ArrayList<>();
        while (found.next()) {
            List<Object> row = new ArrayList<>();
            for (int at = 1; at <= found.getMetaData().getColumnCount(); at++) {
                row.add(found.getObject(at));
            }
            rows.add(row);
        }
        return rows;
    }

    static void refused(int number, String state, Check check) throws Exception {
        try {
            check.run();
        } catch (SQLException error) {
            equal(error.getErrorCode(), number, error.getMessage());
            if (state != null) {
                equal(error.getSQLState(), state, error.getMessage());
            }
            return;
        }
        throw new AssertionError("error " + number + " did not come");
    }

    static void connect() throws Exception {
        for (int round = 0; round < 2; round++) {
            try (Connection connection = open("")) {
                equal(rows(connection, "SELECT 1, DATABASE()").get(0).toString(), List.of(1, DATABASE).toString(), "row");
                String user = (String) rows(connection, "SELECT CURRENT_USER()").get(0).get(0);
                equal(user.split("@")[0], USER, "user");
                equal(connection.isValid(5), true, "ping");
                String version = connection.getMetaData().getDatabaseProductVersion();
                equal(rows(connection, "SELECT VERSION()").get(0).get(0), version.replaceFirst("^5\\.5\\.5-", ""), "version");
            }
        }
        refused(1045, "28000", () -> open(USER, "wrong", DATABASE, ""));
        refused(1045, "28000", () -> open(USER, "", DATABASE, ""));
        refused(1049, "42000", () -> open(USER, PASSWORD, "nowhere", ""));
    }

    static void nativePassword() throws Exception {
        try (Connection connection = open(NATIVE_USER, PASSWORD, DATABASE, "")) {
            String user = (String) rows(connection, "SELECT CURRENT_USER()").get(0).get(0);
            equal(user.split("@")[0], NATIVE_USER, "user");
        }
        refused(1045, "28000", () -> open(NATIVE_USER, "wrong", DATABASE, ""));
    }

    static void tls() throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        try (var text = Files.newInputStream(Path.of(System.getenv("CHECK_CA")))) {
            trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(text));
        }
        Path file = Files.createTempFile("trusted", ".p12");
        try {
            try (OutputStream out = Files.newOutputStream(file)) {
                trusted.store(out, "secret".toCharArray());
            }
            String options = "&sslMode=VERIFY_IDENTITY&trustCertificateKeyStoreUrl=file:" + file
                + "&trustCertificateKeyStoreType=PKCS12&trustCertificateKeyStorePassword=secret";
            try (Connection connection = open(options)) {
                equal(rows(connection, "SHOW STATUS LIKE 'Ssl_cipher'").get(0).get(1).equals(""), false, "no cipher");
            }
        } finally {
            Files.delete(file);
        }
    }

    /** Makes a table with a column of each type, with rows of lowest values, highest, and NULLs. */
    static void makeTypes(Connection connection) throws SQLException {
        String declared = types.stream().map(column -> column.name() + " " + column.declared() + " NULL")
            .collect(Collectors.joining(", "));
        run(connection, "SET time_zone = '+00:00'");
        run(connection, "CREATE TEMPORARY TABLE kept (id INT PRIMARY KEY, " + declared + ")");
        run(connection, "INSERT INTO kept VALUES (1, "
            + types.stream().map(Column::low).collect(Collectors.joining(", ")) + ")");
        run(connection, "INSERT INTO kept VALUES (2, "
            + types.stream().map(Column::high).collect(Collectors.joining(", ")) + ")");
        run(connection, "INSERT INTO kept (id) VALUES (3)");
    }

    static String withoutZeros(String text) {
        return text.contains(".") ? text.replaceFirst("\\.?0+$", "") : text;
    }

    /** The value of a column in the class that an application would ask for. */
    static Object value(ResultSet found, Column column) throws SQLException {
        return switch (column.kind()) {
            case "date" -> found.getObject(column.name(), LocalDate.class);
            case "datetime" -> found.getObject(column.name(), LocalDateTime.class);
            case "time", "long_time" -> found.getObject(column.name(), Duration.class);
            case "bits", "bytes" -> found.getBytes(column.name());
            case "year" -> found.getObject(column.name()) == null ? null : found.getInt(column.name());
            case "integer" -> found.getBigDecimal(column.name());
            default -> found.getObject(column.name());
        };
    }

    /** The text by which types.tsv knows a value. */
    static Object shown(Column column, Object value) {
        if (value == null) {
            return null;
        }
        return switch (column.kind()) {
            case "decimal", "integer" -> ((BigDecimal) value).toPlainString();
            case "float" -> ((Number) value).doubleValue();
            case "date" -> value.toString();
            case "datetime" -> withoutZeros(
                DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSS").format((LocalDateTime) value));
            case "time", "long_time" -> {
                Duration span = ((Duration) value).abs();
                String clock = String.format("%s%02d:%02d:%02d.%06d", ((Duration) value).isNegative() ? "-" : "",
                    span.toHours(), span.toMinutesPart(), span.toSecondsPart(), span.toNanosPart() / 1000);
                yield withoutZeros(clock);
            }
            case "bits", "bytes" -> HexFormat.of().formatHex((byte[]) value);
            default -> value.toString();
        };
    }

    static void checkTypes(ResultSet found) throws SQLException {
        for (String wanted : List.of("low", "high", "null")) {
            equal(found.next(), true, "a row");
            for (Column column : types) {
                Object expected = switch (wanted) {
                    case "low" -> column.lowText();
                    case "high" -> column.highText();
                    default -> null;
                };
                if (expected != null && column.kind().equals("float")) {
                    expected = Double.valueOf((String) expected);
                }
                equal(shown(column, value(found, column)), expected, column.name() + " " + wanted);
                equal(found.getString(column.name()) == null, expected == null, column.name());
                if (column.name().equals("flag") && expected != null) {
                    equal(found.getObject("flag"), expected.equals("1"), "flag");
                }
            }
        }
        equal(found.next(), false, "more rows");
    }

    static void types() throws Exception {
        try (Connection connection = open(""); Statement statement = connection.createStatement()) {
            makeTypes(connection);
            checkTypes(statement.executeQuery("SELECT " + names + " FROM kept ORDER BY id"));
        }
    }

    static void nulls() throws Exception {
        for (String more : List.of("", ON_SERVER)) {
            try (Connection connection = open(more)) {
                makeTypes(connection);
                for (Column column : types) {
                    String query = String.format(
                        "SELECT COUNT(*), COUNT(%s), MIN(id) FROM kept WHERE %1$s IS NULL", column.name());
                    equal(rows(connection, query).toString(), "[[1, 0, 3]]", column.name());
                }
                var select = connection.prepareStatement("SELECT NULL, id FROM kept WHERE age <=> ?");
                select.setNull(1, java.sql.Types.INTEGER);
                equal(rows(select.executeQuery()).toString(), "[[null, 3]]", "NULL");
            }
        }
    }

    static String typeName(Column column) {
        String name = column.declared().replaceFirst("\\(.*?\\)", "");
        return switch (name) {
            case "BOOLEAN" -> "BIT";
            case "ENUM", "SET" -> "CHAR";
            case "JSON" -> ON_MARIADB ? "LONGTEXT" : "JSON";
            default -> name;
        };
    }

    static void metadata() throws Exception {
        try (Connection connection = open("")) {
            makeTypes(connection);
            try (Statement statement = connection.createStatement()) {
                ResultSetMetaData told =
                    statement.executeQuery("SELECT " + names + " FROM kept AS k WHERE id = 0").getMetaData();
                for (int at = 1; at <= types.size(); at++) {
                    Column column = types.get(at - 1);
                    equal(told.getColumnLabel(at), column.name(), "name");
                    equal(told.getColumnTypeName(at), typeName(column), column.name());
                    equal(told.getTableName(at), "kept", column.name());
                    equal(told.isNullable(at), ResultSetMetaData.columnNullable, column.name());
                    if (column.kind().equals("integer") && !column.name().equals("flag")) {
                        equal(told.isSigned(at), !column.declared().endsWith("UNSIGNED"), column.name());
                    }
                    if (column.name().equals("money")) {
                        equal(List.of(told.getPrecision(at), told.getScale(at)), List.of(20, 4), column.name());
                    }
                    if (column.name().equals("name")) {
                        equal(told.getColumnDisplaySize(at), 40, column.name());
                    }
                }
            }
            // The catalogue, which shows shared tables.
            run(connection, "DROP TABLE IF EXISTS shown");
            run(connection, "CREATE TABLE shown (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL, UNIQUE (name))");
            for (String more : List.of("", "&useInformationSchema=true")) {
                try (Connection reader = open(more)) {
                    DatabaseMetaData catalogue = reader.getMetaData();
                    equal(labels(catalogue.getTables(DATABASE, null, "shown", null), "TABLE_NAME", "TABLE_TYPE"),
                        "[shown TABLE]", "tables");
                    equal(labels(catalogue.getColumns(DATABASE, null, "shown", "%"),
                        "COLUMN_NAME", "TYPE_NAME", "COLUMN_SIZE", "IS_NULLABLE", "IS_AUTOINCREMENT"),
                        "[id BIGINT 19 NO YES, name VARCHAR 20 NO NO]", "columns");
                    equal(labels(catalogue.getPrimaryKeys(DATABASE, null, "shown"), "COLUMN_NAME", "KEY_SEQ"),
                        "[id 1]", "primary key");
                    // In an order of the driver's own.
                    String indexes =
                        labels(catalogue.getIndexInfo(DATABASE, null, "shown", true, false), "INDEX_NAME", "COLUMN_NAME");
                    equal(List.of("[PRIMARY id, name name]", "[name name, PRIMARY id]").contains(indexes), true, indexes);
                    equal(labels(catalogue.getImportedKeys(DATABASE, null, "shown"), "FK_NAME"), "[]", "foreign keys");
                    equal(labels(catalogue.getCatalogs(), "TABLE_CAT").contains(DATABASE), true, "databases");
                }
            }
            run(connection, "DROP TABLE shown");
        }
    }

    static String labels(ResultSet found, String... labels) throws SQLException {
        List<String> rows = new ArrayList<>();
        while (found.next()) {
            List<String> row = new ArrayList<>();
            for (String label : labels) {
                row.add(found.getString(label));
            }
            rows.add(String.join(" ", row));
        }
        return rows.toString();
    }

    static void prepared() throws Exception {
        for (String more : List.of("", ON_SERVER)) {
            try (Connection connection = open(more)) {
                makeTypes(connection);
                run(connection, "CREATE TEMPORARY TABLE again LIKE kept");
                var select = connection.prepareStatement("SELECT * FROM kept WHERE id > ? ORDER BY id");
                select.setInt(1, 0);
                ResultSet found = select.executeQuery();
                String marks = "?, ".repeat(types.size()) + "?";
                var insert = connection.prepareStatement("INSERT INTO again VALUES (" + marks + ")");
                while (found.next()) {
                    insert.setInt(1, found.getInt("id"));
                    for (int at = 0; at < types.size(); at++) {
                        Object value = value(found, types.get(at));
                        // The driver sends a Duration as the text "PT1S", which is no TIME, and
                        // leaves away fractions of a DATETIME, which it thinks too new for MariaDB.
                        boolean asText = value instanceof Duration || ON_MARIADB && value instanceof LocalDateTime;
                        insert.setObject(at + 2, asText ? shown(types.get(at), value) : value);
                    }
                    equal(insert.executeUpdate(), 1, "count");
                }
                select = connection.prepareStatement("SELECT " + names + " FROM again WHERE id < ? ORDER BY id");
                select.setLong(1, 100);
                checkTypes(select.executeQuery());

                run(connection, "CREATE TEMPORARY TABLE numbers (id INT PRIMARY KEY, name VARCHAR(20))");
                insert = connection.prepareStatement("INSERT INTO numbers VALUES (?, ?)");
                select = connection.prepareStatement("SELECT name FROM numbers WHERE id = ?");
                for (int number = 0; number < 100; number++) {
                    insert.setInt(1, number);
                    insert.setString(2, "n " + number);
                    insert.executeUpdate();
                    select.setInt(1, number);
                    equal(rows(select.executeQuery()), List.of(List.of("n " + number)), "row");
                }
                select = connection.prepareStatement("SELECT COUNT(*) FROM numbers WHERE name LIKE ? AND id > ?");
                select.setString(1, "n 1%");
                select.setInt(2, 1);
                equal(rows(select.executeQuery()).toString(), "[[10]]", "count");
                equal(select.getParameterMetaData().getParameterCount(), 2, "parameters");
            }
        }
    }

    static void errors() throws Exception {
        for (String more : List.of("", ON_SERVER)) {
            try (Connection connection = open(more)) {
                run(connection, "CREATE TEMPORARY TABLE t (a TINYINT NOT NULL PRIMARY KEY)");
                run(connection, "INSERT INTO t VALUES (1)");
                for (String[] wanted : new String[][] {
                    {"SELEC 1", "1064", "42000"}, {"SELECT * FROM nothing", "1146", "42S02"},
                    {"SELECT nothing FROM t", "1054", "42S22"}, {"INSERT INTO t VALUES (1)", "1062", "23000"},
                    {"INSERT INTO t VALUES (NULL)", "1048", "23000"}, {"INSERT INTO t VALUES (300)", "1264", "22001"},
                }) {
                    // Connector/J has a SQLSTATE of its own for 1264.
                    refused(Integer.parseInt(wanted[1]), wanted[2], () -> run(connection, wanted[0]));
                    refused(Integer.parseInt(wanted[1]), wanted[2], () -> {
                        try (PreparedStatement statement = connection.prepareStatement(wanted[0])) {
                            statement.execute();
                        }
                    });
                }
                try {
                    run(connection, "INSERT INTO t VALUES (1)");
                } catch (SQLIntegrityConstraintViolationException error) {
                    equal(error.getMessage().startsWith("Duplicate entry '1' for key"), true, error.getMessage());
                }
                run(connection, "SET sql_mode = ''");
                try (Statement statement = connection.createStatement()) {
                    statement.execute("INSERT INTO t VALUES (300)");
                    equal(statement.getWarnings().getErrorCode(), 1264, "warning");
                }
                equal(rows(connection, "SELECT a FROM t ORDER BY a").toString(), "[[1], [127]]", "rows");
            }
        }
    }

    static void transactions() throws Exception {
        try (Connection connection = open("")) {
            run(connection, "CREATE TEMPORARY TABLE t (a INT)");
            connection.setAutoCommit(false);
            run(connection, "INSERT INTO t VALUES (1)");
            connection.commit();
            run(connection, "INSERT INTO t VALUES (2)");
            Savepoint savepoint = connection.setSavepoint();
            run(connection, "INSERT INTO t VALUES (3)");
            connection.rollback(savepoint);
            equal(rows(connection, "SELECT a FROM t ORDER BY a").toString(), "[[1], [2]]", "savepoint");
            connection.rollback();
            equal(rows(connection, "SELECT a FROM t").toString(), "[[1]]", "rollback");
            connection.rollback();
            connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
            connection.setReadOnly(true);
            refused(0, "S1009", () -> run(connection, "DELETE FROM t"));
            connection.setReadOnly(false);
            connection.setAutoCommit(true);
            String variable = ON_MARIADB ? "tx_isolation" : "transaction_isolation";
            equal(rows(connection, "SELECT @@autocommit, @@" + variable).toString(), "[[1, READ-COMMITTED]]", "variables");
        }
    }

    static void several() throws Exception {
        try (Connection connection = open("&allowMultiQueries=true"); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TEMPORARY TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT a FROM t; SELECT 'x'");
            List<Object> found = new ArrayList<>();
            do {
                ResultSet result = statement.getResultSet();
                found.add(result == null ? statement.getUpdateCount() : rows(result));
            } while (statement.getMoreResults() || statement.getUpdateCount() >= 0);
            equal(found.toString(), "[0, 2, [[1], [2]], [[x]]]", "results");
        }
    }

    static void bigResult() throws Exception {
        String numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"
            + " SELECT a.i * 1000 + b.i, REPEAT('x', 100) FROM n AS a, n AS b WHERE a.i > ?";
        // All rows at once, row by row, and by a cursor of the server.
        for (String more : List.of("", "stream", ON_SERVER + "&useCursorFetch=true&defaultFetchSize=1000")) {
            try (Connection connection = open(more.equals("stream") ? "" : more);
                    var statement = connection.prepareStatement(numbers)) {
                if (more.equals("stream")) {
                    statement.setFetchSize(Integer.MIN_VALUE);
                }
                statement.setInt(1, 0);
                long count = 0;
                long total = 0;
                ResultSet found = statement.executeQuery();
                while (found.next()) {
                    count += 1;
                    total += found.getLong(1);
                    equal(found.getString(2).length(), 100, "text");
                }
                equal(List.of(count, total), List.of(160_000L, 400L * 1001 * 400 * 401 / 2), "rows");
            }
        }
        for (String more : List.of("&maxAllowedPacket=67108864", ON_SERVER + "&maxAllowedPacket=67108864")) {
            try (Connection connection = open(more);
                    var statement = connection.prepareStatement("SELECT LENGTH(?), REPEAT('y', 20000000)")) {
                statement.setString(1, "z".repeat(20_000_000));
                ResultSet found = statement.executeQuery();
                found.next();
                equal(List.of(found.getInt(1), found.getString(2).length()), List.of(20_000_000, 20_000_000), "lengths");
                // Sent in pieces (COM_STMT_SEND_LONG_DATA).
                statement.setBinaryStream(1, new java.io.ByteArrayInputStream(new byte[3_000_000]));
                found = statement.executeQuery();
                found.next();
                equal(found.getInt(1), 3_000_000, "long data");
            }
        }
    }

    static void tempTables() throws Exception {
        for (String more : List.of("", "&rewriteBatchedStatements=true", ON_SERVER)) {
            try (Connection connection = open(more)) {
                run(connection,
                    "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), KEY (name))");
                try (Statement statement = connection.createStatement()) {
                    statement.executeUpdate("INSERT INTO t (name) VALUES ('first')", Statement.RETURN_GENERATED_KEYS);
                    equal(rows(statement.getGeneratedKeys()).toString(), "[[1]]", "generated");
                }
                try (var insert = connection.prepareStatement("INSERT INTO t (name) VALUES (?)")) {
                    for (int number = 0; number < 999; number++) {
                        insert.setString(1, "name " + number % 10);
                        insert.addBatch();
                    }
                    equal(insert.executeBatch().length, 999, "batch");
                }
                run(connection, "CREATE TEMPORARY TABLE u AS SELECT name, COUNT(*) AS n FROM t GROUP BY name");
                equal(rows(connection, "SELECT t.name, n, COUNT(*) FROM t JOIN u USING (name) GROUP BY name, n"
                    + " HAVING n < 100 ORDER BY name").toString(), "[[first, 1, 1], [name 9, 99, 99]]", "groups");
                try (Statement statement = connection.createStatement()) {
                    // Connector/J asks for the rows that were found.
                    equal(statement.executeUpdate("UPDATE t SET name = 'first' WHERE id <= 2"), 2, "found");
                    equal(statement.executeUpdate("DELETE FROM t WHERE name = 'first'"), 2, "deleted");
                }
                // A result that changes its table.
                try (Statement statement =
                        connection.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
                    ResultSet found = statement.executeQuery("SELECT id, name FROM t WHERE id = 3");
                    found.next();
                    found.updateString("name", "changed");
                    found.updateRow();
                }
                equal(rows(connection, "SELECT name FROM t WHERE id = 3").toString(), "[[changed]]", "updated");
                try (Connection other = open("")) {
                    refused(1146, "42S02", () -> run(other, "SELECT * FROM t"));
                }
                run(connection, "DROP TEMPORARY TABLE t, u");
                refused(1146, "42S02", () -> run(connection, "SELECT * FROM t"));
            }
        }
    }

    static void reset() throws Exception {
        try (Connection connection = open("")) {
            var own = connection.unwrap(com.mysql.cj.jdbc.JdbcConnection.class);
            for (boolean changesUser : new boolean[] {true, false}) {
                run(connection, "CREATE TEMPORARY TABLE t (a INT)");
                run(connection, "SET @a = 5, sql_select_limit = 3");
                if (changesUser) {
                    own.changeUser(USER, PASSWORD);
                } else {
                    own.resetServerState();
                }
                refused(1146, "42S02", () -> run(connection, "SELECT * FROM t"));
                equal(rows(connection, "SELECT @a, @@sql_select_limit > 3, DATABASE()").toString(),
                    "[[null, 1, " + DATABASE + "]]", "variables");
            }
        }
    }
}
