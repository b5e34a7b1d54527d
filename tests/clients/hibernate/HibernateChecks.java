import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.Lob;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Table;
import jakarta.persistence.UniqueConstraint;
import jakarta.persistence.Version;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;

/** What Hibernate does with a server, and all questions that JDBC has about one, over Connector/J. */
public class HibernateChecks {
    public enum Kind { NOVEL, ATLAS }

    @Entity(name = "Author")
    @Table(name = "authors", uniqueConstraints = @UniqueConstraint(name = "author_name", columnNames = {"name", "born"}))
    public static class Author {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(nullable = false, length = 100) String name;
        LocalDate born;
        boolean alive = true;
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) List<Book> books = new ArrayList<>();

        Author() {}

        Author(String name, LocalDate born) {
            this.name = name;
            this.born = born;
        }
    }

    @Entity(name = "Book")
    @Table(name = "books", indexes = @Index(name = "book_published", columnList = "published, price DESC"))
    public static class Book {
        // Numbers of a table of its own: MySQL has no sequences.
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @Version int version;
        String title;
        @Column(precision = 12, scale = 2) BigDecimal price;
        LocalDateTime published;
        LocalTime opening;
        Duration reading;
        UUID reference;
        @Lob String text;
        byte[] cover;
        Double weight;
        Boolean lent;
        @Enumerated(EnumType.STRING) Kind kind;
        @Enumerated(EnumType.ORDINAL) Kind second;
        @ManyToOne(optional = false) Author author;
        @ElementCollection Set<String> words = new HashSet<>();
        @ManyToMany Set<Shelf> shelves = new HashSet<>();

        Book() {}

        Book(Author author, String title, String price) {
            this.author = author;
            this.title = title;
            this.price = new BigDecimal(price);
            author.books.add(this);
        }
    }

    @Entity(name = "Shelf")
    public static class Shelf {
        @Id String name;

        Shelf() {}

        Shelf(String name) {
            this.name = name;
        }
    }

    /** The authors of a later version of the program. */
    @Entity(name = "Author")
    @Table(name = "authors", indexes = @Index(name = "author_country", columnList = "country"))
    public static class LaterAuthor {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(nullable = false, length = 100) String name;
        LocalDate born;
        boolean alive;
        @Column(length = 2) String country;
        @ManyToOne Shelf shelf;
    }

    interface Check {
        void run() throws Exception;
    }

    static final boolean ON_MARIADB = "mariadb".equals(System.getenv("CHECK_SERVER"));
    static final String DATABASE = System.getenv("CHECK_DATABASE");
    static final String ADDRESS = "jdbc:mysql://" + System.getenv("CHECK_HOST") + ":" + System.getenv("CHECK_PORT") + "/"
        + DATABASE + "?allowPublicKeyRetrieval=true&sslMode=DISABLED&connectionTimeZone=UTC";
    // Connector/J takes MariaDB for a server without fractions of seconds.
    static final LocalDateTime PUBLISHED = LocalDateTime.of(2026, 2, 3, 4, 5, 6, ON_MARIADB ? 0 : 123_456_000);
    static SessionFactory factory;

    public static void main(String[] arguments) throws Exception {
        java.util.logging.Logger.getLogger("org.hibernate").setLevel(java.util.logging.Level.OFF);
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("create", HibernateChecks::create);
        checks.put("rows", HibernateChecks::rows);
        checks.put("queries", HibernateChecks::queries);
        checks.put("changes", HibernateChecks::changes);
        checks.put("refused", HibernateChecks::refused);
        checks.put("rollback", HibernateChecks::rollback);
        checks.put("validate", HibernateChecks::validate);
        checks.put("update", HibernateChecks::update);
        checks.put("catalogue", HibernateChecks::catalogue);
        checks.put("drop", HibernateChecks::drop);
        boolean failed = false;
        for (Map.Entry<String, Check> check : checks.entrySet()) {
            try {
                check.getValue().run();
                System.out.println(check.getKey() + "\tok");
            } catch (Throwable error) {
                failed = true;
                if (System.getenv("CHECK_TRACE") != null) {
                    error.printStackTrace();
                }
                int line = Arrays.stream(error.getStackTrace())
                    .filter(frame -> "HibernateChecks.java".equals(frame.getFileName()) && !frame.getMethodName().equals("equal"))
                    .mapToInt(StackTraceElement::getLineNumber).findFirst().orElse(0);
                String text = error.toString();
                for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
                    text += " - " + cause.getMessage();
                }
                text = text.replaceAll("\\s+", " ");
                System.out.println(check.getKey() + "\tFAIL\tline " + line + ": " + text.substring(0, Math.min(text.length(), 600)));
            }
        }
        System.exit(failed ? 1 : 0);
    }

    static void equal(Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) {
            throw new AssertionError(found + ", expected " + expected);
        }
    }

    /** A factory that does to the tables what `ddl` says; only create-drop passes over what is not there. */
    static SessionFactory open(String ddl, Class<?>... entities) {
        Configuration configuration = new Configuration();
        configuration.setProperty("hibernate.connection.url", ADDRESS);
        configuration.setProperty("hibernate.connection.username", System.getenv("CHECK_USER"));
        configuration.setProperty("hibernate.connection.password", System.getenv("CHECK_PASSWORD"));
        configuration.setProperty("hibernate.connection.pool_size", "3");
        configuration.setProperty("hibernate.hbm2ddl.auto", ddl);
        configuration.setProperty("hibernate.hbm2ddl.halt_on_error", String.valueOf(!ddl.equals("create-drop")));
        configuration.setProperty("hibernate.dialect", "org.hibernate.dialect.MySQLDialect");
        configuration.setProperty("hibernate.jdbc.batch_size", "20");
        configuration.setProperty("hibernate.jdbc.time_zone", "UTC");
        Arrays.stream(entities).forEach(configuration::addAnnotatedClass);
        return configuration.buildSessionFactory();
    }

    static <T> T asked(Function<Session, T> act) {
        return factory.fromTransaction(act::apply);
    }

    static void done(Consumer<Session> act) {
        factory.inTransaction(act::accept);
    }

    static List<List<Object>> found(String query) {
        return asked(session -> session.createSelectionQuery(query, Object[].class).getResultList())
            .stream().map(Arrays::asList).toList();
    }

    static int changed(String statement) {
        return asked(session -> session.createMutationQuery(statement).executeUpdate());
    }

    static Connection connection(String more) throws SQLException {
        return DriverManager.getConnection(ADDRESS + more, System.getenv("CHECK_USER"), System.getenv("CHECK_PASSWORD"));
    }

    static void create() {
        factory = open("create-only", Author.class, Book.class, Shelf.class);
    }

    /** Each kind of field is read back as it was. */
    static void rows() {
        UUID reference = UUID.randomUUID();
        String text = "Ä".repeat(10_000);
        done(session -> {
            Shelf blue = new Shelf("blue");
            session.persist(blue);
            Author anna = new Author("Änna", LocalDate.of(1970, 2, 28));
            Book book = new Book(anna, "One", "12.50");
            book.published = PUBLISHED;
            book.opening = LocalTime.of(23, 59, 58);
            book.reading = Duration.ofHours(30);
            book.reference = reference;
            book.text = text;
            book.cover = new byte[] {0, -1, 39, 92};
            book.weight = 0.1;
            book.lent = true;
            book.kind = Kind.ATLAS;
            book.second = Kind.NOVEL;
            book.words.addAll(Set.of("red", "thin"));
            book.shelves.add(blue);
            new Book(anna, "Two", "7.25").words.add("red");
            session.persist(anna);
            Author bob = new Author("Bob", null);
            for (int at = 0; at < 100; at++) {
                Book each = new Book(bob, "Volume " + at, at + ".00");
                each.published = LocalDateTime.of(2026, 1 + at % 3, 1, 0, 0);
                each.kind = at % 2 == 0 ? Kind.NOVEL : Kind.ATLAS;
            }
            session.persist(bob);
        });
        done(session -> {
            Book book = session.createSelectionQuery("from Book where title = 'One'", Book.class).getSingleResult();
            equal(List.of(book.price, book.published, book.opening, book.reading, book.reference, book.weight, book.lent),
                List.of(new BigDecimal("12.50"), PUBLISHED, LocalTime.of(23, 59, 58), Duration.ofHours(30), reference, 0.1, true));
            equal(List.of(book.kind, book.second, book.text, book.author.born, book.author.alive),
                List.of(Kind.ATLAS, Kind.NOVEL, text, LocalDate.of(1970, 2, 28), true));
            equal(book.cover, new byte[] {0, -1, 39, 92});
            equal(book.words, Set.of("red", "thin"));
            equal(book.shelves.stream().map(shelf -> shelf.name).toList(), List.of("blue"));
        });
    }

    static void queries() {
        equal(found("select a.name, count(b), sum(b.price), max(b.published) from Author a join a.books b group by a.name"
                + " having count(b) > 1 order by count(b) desc"),
            List.of(List.of("Bob", 100L, new BigDecimal("4950.00"), LocalDateTime.of(2026, 3, 1, 0, 0)),
                List.of("Änna", 2L, new BigDecimal("19.75"), PUBLISHED)));
        equal(found("select b.kind, count(*), avg(b.weight) from Book b group by b.kind order by b.kind nulls last"),
            List.of(Arrays.asList(Kind.ATLAS, 51L, 0.1), Arrays.asList(Kind.NOVEL, 50L, null), Arrays.asList(null, 1L, null)));
        equal(found("select extract(month from b.published), count(*) from Book b where b.author.name = 'Bob'"
                + " group by extract(month from b.published) order by 1"),
            List.of(List.of(1, 34L), List.of(2, 33L), List.of(3, 33L)));
        equal(found("select w, count(*) from Book b join b.words w group by w order by w"),
            List.of(List.of("red", 2L), List.of("thin", 1L)));
        equal(found("select a.name, (select max(b.price) from Book b where b.author = a) from Author a order by a.id"),
            List.of(List.of("Änna", new BigDecimal("12.50")), List.of("Bob", new BigDecimal("99.00"))));
        equal(found("select a.name, a.id from Author a"
            + " where exists (select 1 from a.books b where 'thin' member of b.words)").size(), 1);
        equal(found("select distinct a.name, b.kind from Author a left join a.books b"
            + " where upper(a.name) like 'B%' order by b.kind").size(), 2);
        equal(found("select b.title, rank() over (partition by b.author order by b.price desc) from Book b"
                + " where b.author.name = 'Änna' order by 2"),
            List.of(List.of("One", 1L), List.of("Two", 2L)));
        done(session -> {
            List<Book> page = session
                .createSelectionQuery("from Book b join fetch b.author order by b.price desc, b.id", Book.class)
                .setFirstResult(10).setMaxResults(5).getResultList();
            equal(page.stream().map(book -> book.title).toList(),
                List.of("Volume 89", "Volume 88", "Volume 87", "Volume 86", "Volume 85"));
            equal(session.createSelectionQuery("from Author a left join fetch a.books order by a.id", Author.class)
                .getResultList().stream().map(author -> author.books.size()).toList(), List.of(2, 100));
            equal(session.createNativeQuery("select name from authors where id in (:ids) order by id", String.class)
                .setParameter("ids", List.of(1, 2, 3)).getResultList(), List.of("Änna", "Bob"));
            equal(session
                .createSelectionQuery("select count(*) from Book where price between :low and :high and title not in :titles", Long.class)
                .setParameter("low", new BigDecimal("10")).setParameter("high", new BigDecimal("20"))
                .setParameter("titles", List.of("One", "Volume 15")).getSingleResult(), 10L);
        });
    }

    static void changes() {
        equal(changed("update Book set price = price + 1 where kind = NOVEL"), 50);
        equal(changed("delete from Book b where b.author in (select a from Author a where a.name = 'Bob') and b.price > 50"), 50);
        equal(changed("insert into Shelf (name) select concat('of ', a.name) from Author a"), 2);
        done(session -> {
            Book book = session.createSelectionQuery("from Book where title = 'Two'", Book.class).getSingleResult();
            book.title = "Second";
            book.words.clear();
            session.flush();
            equal(book.version, 1);
            session.refresh(book, org.hibernate.LockMode.PESSIMISTIC_WRITE);
            book.author.books.removeIf(each -> each.title.equals("One"));
        });
        equal(found("select b.title, b.version from Book b where b.author.name = 'Änna'"), List.of(List.of("Second", 1)));
        // Somebody else changes the row between reading and writing.
        try {
            done(session -> {
                Book mine = session.createSelectionQuery("from Book where title = 'Second'", Book.class).getSingleResult();
                mine.title = "mine";
                try (Session other = factory.openSession()) {
                    other.beginTransaction();
                    other.createNativeMutationQuery("update books set version = version + 1 where title = 'Second'")
                        .executeUpdate();
                    other.getTransaction().commit();
                }
            });
            throw new AssertionError("a stale row is written");
        } catch (jakarta.persistence.OptimisticLockException expected) {
            // No row has the version that was read.
        }
    }

    static void refused() {
        try {
            done(session -> session.persist(new Author("Änna", LocalDate.of(1970, 2, 28))));
            throw new AssertionError("a duplicate is written");
        } catch (ConstraintViolationException error) {
            equal(error.getSQLState(), "23000");
            equal(error.getConstraintName().replace("authors.", ""), "author_name");
        }
        equal(found("select count(*), min(name) from Author").get(0).get(0), 2L);
    }

    static void rollback() {
        try {
            done(session -> {
                session.persist(new Shelf("lost"));
                session.flush();
                throw new IllegalStateException();
            });
        } catch (IllegalStateException expected) {
            // It is what ends the transaction.
        }
        // Shared tables keep their rows, as those of MyISAM do.
        equal(found("select count(*), 1 from Shelf where name = 'lost'").get(0).get(0), ON_MARIADB ? 0L : 1L);
    }

    static void validate() {
        open("validate", Author.class, Book.class, Shelf.class).close();
        try {
            open("validate", LaterAuthor.class, Shelf.class).close();
            throw new AssertionError("a missing column is not seen");
        } catch (org.hibernate.tool.schema.spi.SchemaManagementException missing) {
            equal(missing.getMessage().contains("missing column [country]"), true);
        }
    }

    static void update() {
        open("update", LaterAuthor.class, Shelf.class).close();
        open("validate", LaterAuthor.class, Shelf.class).close();
        // A second time there is nothing to do.
        open("update", LaterAuthor.class, Shelf.class).close();
        equal(asked(session -> session.createNativeQuery("select count(*) from authors where country is null", Long.class)
            .getSingleResult()), 2L);
    }

    /** Each method of DatabaseMetaData, with plain arguments: none may fail that does not fail with MySQL. */
    static void catalogue() throws Exception {
        List<String> failed = new ArrayList<>();
        int asked = 0;
        String shown = "&useInformationSchema=false&nullDatabaseMeansCurrent=true";
        for (String more : List.of("", shown, "&databaseTerm=SCHEMA")) {
            try (Connection connection = connection(more)) {
                DatabaseMetaData catalogue = connection.getMetaData();
                Method[] methods = DatabaseMetaData.class.getMethods();
                Arrays.sort(methods, Comparator.comparing(Method::toString));
                for (Method method : methods) {
                    if (method.getDeclaringClass() != DatabaseMetaData.class) {
                        continue;
                    }
                    for (String table : List.of("books", "%", "nothing")) {
                        asked++;
                        try {
                            drain(method.invoke(catalogue, plain(method, more.contains("SCHEMA") ? DATABASE : null, table)));
                        } catch (InvocationTargetException error) {
                            failed.add(method.getName() + more + ": " + error.getCause());
                        }
                        if (method.getParameterCount() == 0) {
                            break;
                        }
                    }
                }
            }
        }
        // Foreign keys of a table that there is not are an error where SHOW CREATE TABLE is asked for them.
        failed.removeIf(text -> text.contains("useInformationSchema=false") && text.contains("doesn't exist"));
        if (!failed.isEmpty()) {
            throw new AssertionError(failed.size() + " of " + asked + ": " + new HashSet<>(failed));
        }
        try (Connection connection = connection("")) {
            DatabaseMetaData catalogue = connection.getMetaData();
            equal(names(catalogue.getTables(DATABASE, null, "%", new String[] {"TABLE"}), "TABLE_NAME"),
                List.of("Book_words", "Shelf", "authors", "books", "books_SEQ", "books_Shelf"));
            equal(names(catalogue.getPrimaryKeys(DATABASE, null, "books_Shelf"), "COLUMN_NAME"), List.of("Book_id", "shelves_name"));
            equal(names(catalogue.getIndexInfo(DATABASE, null, "books", false, true), "COLUMN_NAME"),
                List.of("author_id", "id", "price", "published"));
            equal(names(catalogue.getColumns(DATABASE, null, "authors", "%"), "TYPE_NAME"),
                List.of("BIGINT", "BIT", "DATE", "VARCHAR", "VARCHAR", "VARCHAR"));
            equal(names(catalogue.getBestRowIdentifier(DATABASE, null, "Shelf", DatabaseMetaData.bestRowSession, true), "COLUMN_NAME"),
                List.of("name"));
        }
    }

    static List<String> names(ResultSet rows, String column) throws SQLException {
        List<String> found = new ArrayList<>();
        while (rows.next()) {
            found.add(rows.getString(column));
        }
        return found.stream().sorted().collect(Collectors.toList());
    }

    static Object[] plain(Method method, String schema, String table) {
        boolean ofTable = !method.getName().matches("getSchemas|getProcedures|getFunctions|getUDTs|getSuperTypes|getAttributes");
        int at = 0;
        Object[] arguments = new Object[method.getParameterCount()];
        for (int place = 0; place < arguments.length; place++) {
            Class<?> kind = method.getParameterTypes()[place];
            if (kind == String.class) {
                // Catalogue, schema, table, column; getCrossReference has two tables.
                arguments[place] = switch (at++ % 3) {
                    case 0 -> at == 4 && !method.getName().equals("getCrossReference") ? "%" : DATABASE;
                    case 1 -> schema;
                    default -> ofTable ? table : "%";
                };
            } else if (kind == int.class) {
                arguments[place] = switch (method.getName()) {
                    case "supportsConvert" -> java.sql.Types.INTEGER;
                    case "supportsResultSetConcurrency" -> place == 0 ? ResultSet.TYPE_FORWARD_ONLY : ResultSet.CONCUR_READ_ONLY;
                    case "getBestRowIdentifier", "supportsTransactionIsolationLevel" -> 0;
                    default -> ResultSet.TYPE_FORWARD_ONLY;
                };
            } else if (kind == boolean.class) {
                arguments[place] = false;
            }
        }
        return arguments;
    }

    static void drain(Object answer) throws SQLException {
        if (answer instanceof ResultSet rows) {
            try (rows) {
                int width = rows.getMetaData().getColumnCount();
                while (rows.next()) {
                    for (int at = 1; at <= width; at++) {
                        rows.getObject(at);
                    }
                }
            }
        }
    }

    static void drop() throws SQLException {
        factory.close();
        open("create-drop", Author.class, Book.class, Shelf.class).close();
        try (Connection connection = connection("")) {
            equal(names(connection.getMetaData().getTables(DATABASE, null, "%", null), "TABLE_NAME"), List.of());
        }
    }
}
