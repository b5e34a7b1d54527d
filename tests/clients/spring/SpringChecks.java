package checks;

import com.mysql.cj.jdbc.MysqlDataSource;
import com.zaxxer.hikari.HikariDataSource;
import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.LockModeType;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Version;
import java.io.File;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.Scope;
import liquibase.UpdateSummaryEnum;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.resource.ClassLoaderResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.Table;
import liquibase.ui.LoggerUIService;
import org.apache.ibatis.annotations.Insert;
import org.apache.ibatis.annotations.Options;
import org.apache.ibatis.annotations.Param;
import org.apache.ibatis.annotations.Select;
import org.apache.ibatis.annotations.Update;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.ExecutorType;
import org.apache.ibatis.session.SqlSession;
import org.apache.ibatis.session.SqlSessionFactory;
import org.apache.ibatis.session.SqlSessionFactoryBuilder;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;
import org.flywaydb.core.Flyway;
import org.jooq.DSLContext;
import org.jooq.SQLDialect;
import org.jooq.impl.DSL;
import org.jooq.impl.SQLDataType;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.dao.CannotAcquireLockException;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.data.domain.Page;
import org.springframework.data.domain.PageRequest;
import org.springframework.data.domain.Sort;
import org.springframework.data.jpa.domain.Specification;
import org.springframework.data.jpa.repository.EntityGraph;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.JpaSpecificationExecutor;
import org.springframework.data.jpa.repository.Lock;
import org.springframework.data.jpa.repository.Modifying;
import org.springframework.data.jpa.repository.Query;
import org.springframework.data.jpa.repository.config.EnableJpaRepositories;
import org.springframework.jdbc.BadSqlGrammarException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.namedparam.NamedParameterJdbcTemplate;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.jdbc.core.simple.SimpleJdbcInsert;
import org.springframework.jdbc.support.GeneratedKeyHolder;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionTemplate;

/** What an application of Spring Boot does: migrations, repositories, JdbcTemplate, a pool; and MyBatis and jOOQ. */
public class SpringChecks {
    public enum State { DONE, OPEN }

    @Entity(name = "Customer")
    public static class Customer {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(nullable = false, length = 100) String name;
        @Column(nullable = false) String email;
        @Column(nullable = false, columnDefinition = "char(2)") String country = "DE";
        int score;
        LocalDate born;
        @Column(insertable = false, updatable = false) LocalDateTime created;
        @OneToMany(mappedBy = "customer") List<Purchase> purchases = new ArrayList<>();

        Customer() {}

        Customer(String name, String country, int score) {
            this.name = name;
            this.email = name.toLowerCase() + "@example.com";
            this.country = country;
            this.score = score;
        }
    }

    @Entity(name = "Purchase")
    public static class Purchase {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Version int version;
        @ManyToOne(fetch = FetchType.LAZY, optional = false) @JoinColumn(name = "customer_id") Customer customer;
        @Enumerated(EnumType.STRING) @Column(nullable = false) State state = State.OPEN;
        @Column(precision = 12, scale = 2, nullable = false) BigDecimal total;
        @Column(nullable = false) LocalDateTime placed;
        UUID reference = UUID.nameUUIDFromBytes(new byte[] {1});
        @Column(columnDefinition = "longtext") String note;
        boolean paid;

        Purchase() {}

        Purchase(Customer customer, String total, LocalDateTime placed) {
            this.customer = customer;
            this.total = new BigDecimal(total);
            this.placed = placed;
        }
    }

    public interface Total {
        String getCountry();
        long getOrders();
        BigDecimal getTotal();
    }

    public interface Customers extends JpaRepository<Customer, Long>, JpaSpecificationExecutor<Customer> {
        Optional<Customer> findByEmail(String email);
        List<Customer> findTop2ByCountryOrderByScoreDescName(String country);
        List<Customer> findByNameContainingIgnoreCase(String part);
        List<Customer> findByScoreBetweenAndCountryIn(int low, int high, List<String> countries);
        long countByCountry(String country);
        boolean existsByEmail(String email);
        Page<Customer> findByScoreGreaterThan(int score, org.springframework.data.domain.Pageable page);
        @EntityGraph(attributePaths = "purchases") List<Customer> findByScoreGreaterThanOrderById(int score);
        @Modifying @Query("update Customer c set c.score = c.score + :more where c.country = :country")
        int raise(@org.springframework.data.repository.query.Param("more") int more,
            @org.springframework.data.repository.query.Param("country") String country);
        @Lock(LockModeType.PESSIMISTIC_WRITE) @Query("select c from Customer c where c.id = ?1") Customer locked(long id);
        long deleteByScoreLessThan(int score);
    }

    public interface Purchases extends JpaRepository<Purchase, Long> {
        @Query("select c.country as country, count(p) as orders, sum(p.total) as total from Purchase p join p.customer c"
            + " group by c.country order by sum(p.total) desc")
        List<Total> totals();
        @Query(nativeQuery = true, countQuery = "SELECT COUNT(*) FROM purchase WHERE total > ?1",
            value = "SELECT * FROM purchase WHERE total > ?1")
        Page<Purchase> dearer(BigDecimal total, org.springframework.data.domain.Pageable page);
        @Query(nativeQuery = true, value = "SELECT name FROM (SELECT c.name, p.total, ROW_NUMBER() OVER (PARTITION BY c.id"
            + " ORDER BY p.total DESC) AS place FROM purchase p JOIN customer c ON c.id = p.customer_id) t"
            + " WHERE place = 1 ORDER BY total DESC LIMIT 3")
        List<String> best();
    }

    @SpringBootConfiguration
    @EnableAutoConfiguration
    @EnableJpaRepositories(considerNestedRepositories = true)
    public static class Application {}

    interface Check {
        void run() throws Exception;
    }

    static final boolean ON_MARIADB = "mariadb".equals(System.getenv("CHECK_SERVER"));
    static final String DATABASE = System.getenv("CHECK_DATABASE");
    static final String ADDRESS = "jdbc:mysql://" + System.getenv("CHECK_HOST") + ":" + System.getenv("CHECK_PORT") + "/"
        + DATABASE + "?allowPublicKeyRetrieval=true&sslMode=DISABLED&connectionTimeZone=UTC";
    static final LocalDateTime PLACED = LocalDateTime.of(2026, 2, 3, 4, 5, 6, 0);
    static ConfigurableApplicationContext context;
    static JdbcTemplate jdbc;

    public static void main(String[] arguments) throws Exception {
        System.setProperty("org.jooq.no-logo", "true");
        System.setProperty("org.jooq.no-tips", "true");
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("flyway", SpringChecks::flyway);
        checks.put("start", SpringChecks::start);
        checks.put("repositories", SpringChecks::repositories);
        checks.put("queries", SpringChecks::queries);
        checks.put("transactions", SpringChecks::transactions);
        checks.put("jdbc", SpringChecks::templates);
        checks.put("errors", SpringChecks::errors);
        checks.put("pool", SpringChecks::pool);
        checks.put("mybatis", SpringChecks::mybatis);
        checks.put("jooq", SpringChecks::jooq);
        checks.put("jooq_classes", SpringChecks::classes);
        checks.put("liquibase", SpringChecks::liquibase);
        checks.put("clean", SpringChecks::clean);
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
                    .filter(frame -> "SpringChecks.java".equals(frame.getFileName()) && !frame.getMethodName().equals("equal"))
                    .mapToInt(StackTraceElement::getLineNumber).findFirst().orElse(0);
                String text = error.toString();
                for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
                    text += " - " + cause.getMessage();
                }
                text = text.replaceAll("\\s+", " ");
                System.out.println(check.getKey() + "\tFAIL\tline " + line + ": " + text.substring(0, Math.min(text.length(), 900)));
            }
        }
        System.exit(failed ? 1 : 0);
    }

    static void equal(Object found, Object expected) {
        if (!Objects.deepEquals(found, expected)) {
            throw new AssertionError(found + ", expected " + expected);
        }
    }

    static <E extends Throwable> void refused(Class<E> kind, Check act) throws Exception {
        try {
            act.run();
        } catch (Throwable error) {
            if (kind.isInstance(error)) {
                return;
            }
            throw error;
        }
        throw new AssertionError("it was not refused");
    }

    /** Connections of their own, outside of the pool. */
    static DataSource source() {
        MysqlDataSource source = new MysqlDataSource();
        source.setUrl(ADDRESS);
        source.setUser(System.getenv("CHECK_USER"));
        source.setPassword(System.getenv("CHECK_PASSWORD"));
        return source;
    }

    static Flyway migrations(String... locations) {
        return Flyway.configure().dataSource(source()).locations(locations).cleanDisabled(false).load();
    }

    static void flyway() {
        Flyway first = migrations("classpath:db/migration");
        equal(first.info().pending().length, 2);
        equal(Flyway.configure().dataSource(source()).target("1").load().migrate().migrationsExecuted, 1);
        equal(first.migrate().migrationsExecuted, 1);
        equal(first.migrate().migrationsExecuted, 0);
        first.validate();
        equal(first.info().current().getVersion().getVersion(), "2");
        equal(first.info().applied().length, 2);
        first.repair();
        first.clean();
        equal(first.info().pending().length, 2);
    }

    /** Spring runs the migrations, Hibernate compares its entities with the tables. */
    static void start() {
        Map<String, Object> settings = new LinkedHashMap<>();
        settings.put("spring.datasource.url", ADDRESS);
        settings.put("spring.datasource.username", System.getenv("CHECK_USER"));
        settings.put("spring.datasource.password", System.getenv("CHECK_PASSWORD"));
        settings.put("spring.datasource.hikari.maximum-pool-size", 4);
        settings.put("spring.datasource.hikari.connection-init-sql", "SET SESSION innodb_lock_wait_timeout = 1");
        settings.put("spring.jpa.hibernate.ddl-auto", "validate");
        settings.put("spring.jpa.open-in-view", "false");
        settings.put("spring.jpa.properties.hibernate.jdbc.batch_size", 20);
        settings.put("spring.liquibase.enabled", false);
        settings.put("logging.level.root", "OFF");
        context = new SpringApplicationBuilder(Application.class).web(WebApplicationType.NONE)
            .bannerMode(org.springframework.boot.Banner.Mode.OFF).properties(settings).run();
        jdbc = context.getBean(JdbcTemplate.class);
        equal(jdbc.queryForList("SELECT version FROM flyway_schema_history ORDER BY installed_rank", String.class), List.of("1", "2"));
        equal(jdbc.queryForObject("SELECT name FROM customer", String.class), "Anna");
    }

    static void repositories() {
        Customers customers = context.getBean(Customers.class);
        Purchases purchases = context.getBean(Purchases.class);
        customers.saveAll(List.of(new Customer("Bert", "DE", 5), new Customer("Cara", "DE", 7), new Customer("Dora", "FR", 1)));
        Customer anna = customers.findByEmail("anna@example.com").orElseThrow();
        equal(anna.born, LocalDate.of(1970, 2, 28));
        anna.score = 9;
        customers.save(anna);
        List<Purchase> made = new ArrayList<>();
        for (Customer customer : customers.findAll(Sort.by("name"))) {
            for (int n = 1; n <= 3; n++) {
                made.add(new Purchase(customer, customer.score * n + ".50", PLACED.plusDays(n)));
            }
        }
        purchases.saveAllAndFlush(made);
        equal(purchases.count(), 12L);
        Purchase one = purchases.findById(made.get(0).id).orElseThrow();
        equal(List.of(one.total, one.placed, one.reference, one.state, one.paid),
            List.of(new BigDecimal("9.50"), PLACED.plusDays(1), UUID.nameUUIDFromBytes(new byte[] {1}), State.OPEN, false));
        one.state = State.DONE;
        one.paid = true;
        one.note = "ü".repeat(100_000);
        equal(purchases.saveAndFlush(one).version, 1);
        equal(purchases.findById(one.id).orElseThrow().note.length(), 100_000);
        refused(org.springframework.orm.ObjectOptimisticLockingFailureException.class, one, purchases);
        purchases.deleteById(made.get(11).id);
        equal(purchases.count(), 11L);
        customers.deleteAllByIdInBatch(List.of(-1L, -2L));
        equal(customers.existsById(-1L), false);
    }

    /** A purchase that another has changed meanwhile is not saved. */
    static void refused(Class<? extends Throwable> kind, Purchase stale, Purchases purchases) {
        Purchase other = purchases.findById(stale.id).orElseThrow();
        other.note = "changed";
        purchases.saveAndFlush(other);
        stale.note = "late";
        stale.version = 0;
        try {
            refused(kind, () -> purchases.saveAndFlush(stale));
        } catch (Exception error) {
            throw new AssertionError(error);
        }
    }

    static List<String> names(Iterable<Customer> found) {
        List<String> names = new ArrayList<>();
        found.forEach(customer -> names.add(customer.name));
        return names;
    }

    static void queries() {
        Customers customers = context.getBean(Customers.class);
        Purchases purchases = context.getBean(Purchases.class);
        equal(names(customers.findTop2ByCountryOrderByScoreDescName("DE")), List.of("Cara", "Bert"));
        equal(names(customers.findByNameContainingIgnoreCase("AR")), List.of("Cara"));
        equal(names(customers.findByScoreBetweenAndCountryIn(1, 7, List.of("FR", "AT"))), List.of("Dora"));
        equal(customers.countByCountry("DE"), 2L);
        equal(customers.existsByEmail("dora@example.com"), true);
        Page<Customer> page = customers.findByScoreGreaterThan(0, PageRequest.of(1, 2, Sort.by("name").descending()));
        equal(List.of(names(page), page.getTotalElements(), page.getTotalPages()), List.of(List.of("Bert", "Anna"), 4L, 2));
        List<Customer> with = customers.findByScoreGreaterThanOrderById(0);
        equal(with.stream().map(customer -> customer.purchases.size()).toList(), List.of(3, 3, 3, 2));
        Specification<Customer> dear = (root, query, builder) -> {
            var inner = query.subquery(Long.class);
            var purchase = inner.from(Purchase.class);
            inner.select(purchase.get("customer").get("id")).where(builder.gt(purchase.get("total"), 20));
            return builder.and(root.get("id").in(inner), builder.notEqual(root.get("country"), "FR"));
        };
        equal(names(customers.findAll(dear, Sort.by("name"))), List.of("Anna", "Cara"));
        equal(customers.count(dear), 2L);
        List<Total> totals = purchases.totals();
        equal(totals.stream().map(total -> total.getCountry() + " " + total.getOrders() + " " + total.getTotal()).toList(),
            List.of("DE 6 75.00", "AT 3 55.50", "FR 2 4.00"));
        Page<Purchase> dearer = purchases.dearer(new BigDecimal("10"), PageRequest.of(0, 3, Sort.by("total")));
        equal(List.of(dearer.getTotalElements(), dearer.getContent().get(0).total), List.of(6L, new BigDecimal("10.50")));
        equal(purchases.best(), List.of("Anna", "Cara", "Bert"));
        EntityManager manager = context.getBean(EntityManager.class);
        equal(manager.createQuery("select year(p.placed), count(distinct p.customer.id), avg(p.total) from Purchase p"
            + " where p.placed > :from group by year(p.placed) having count(*) > 1", Object[].class)
            .setParameter("from", PLACED).getSingleResult()[1], 4L);
        equal(manager.createQuery("select c.name from Customer c left join c.purchases p on p.total > 20 group by c.id, c.name"
            + " having count(p) = 0 order by c.name", String.class).getResultList(), List.of("Bert", "Dora"));
        List<String> either = manager.createQuery("select c.name from Customer c where exists (select 1 from Purchase p"
            + " where p.customer = c and p.paid) union select c.name from Customer c where c.country = 'FR'", String.class).getResultList();
        equal(either.stream().sorted().toList(), List.of("Anna", "Dora"));
        equal(manager.createQuery("with best as (select p.customer.id as id, max(p.total) as top from Purchase p group by p.customer.id)"
            + " select c.name, b.top from Customer c join best b on b.id = c.id order by b.top desc limit 1", Object[].class)
            .getSingleResult()[0], "Anna");
    }

    static void transactions() throws Exception {
        Customers customers = context.getBean(Customers.class);
        TransactionTemplate transaction = new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
        equal(transaction.execute(status -> customers.raise(10, "DE")), 2);
        equal(customers.findByEmail("bert@example.com").orElseThrow().score, 15);
        // MariaDB has no FOR UPDATE OF.
        if (!ON_MARIADB) {
            transaction.executeWithoutResult(status -> equal(customers.locked(1).name, "Anna"));
        }
        TransactionTemplate nested = new TransactionTemplate(context.getBean(PlatformTransactionManager.class));
        nested.setIsolationLevel(TransactionDefinition.ISOLATION_SERIALIZABLE);
        nested.setReadOnly(true);
        nested.setTimeout(5);
        equal(nested.execute(status -> customers.count()), 4L);
        refused(IllegalStateException.class, () -> transaction.executeWithoutResult(status -> {
            customers.saveAndFlush(new Customer("Lost", "XX", 0));
            throw new IllegalStateException();
        }));
        // Shared tables keep what was added, as those of MyISAM do.
        equal(customers.countByCountry("XX"), ON_MARIADB ? 0L : 1L);
        equal(transaction.execute(status -> customers.deleteByScoreLessThan(1)), ON_MARIADB ? 0L : 1L);
        // Temporary tables are those of one transaction's connection, and are rolled back.
        transaction.executeWithoutResult(status -> {
            jdbc.execute("CREATE TEMPORARY TABLE chosen AS SELECT id, country FROM customer WHERE score > 5");
            equal(jdbc.queryForList("SELECT name FROM customer JOIN chosen USING (id) ORDER BY name", String.class),
                List.of("Anna", "Bert", "Cara"));
            jdbc.execute("SAVEPOINT whole");
            jdbc.update("DELETE FROM chosen");
            jdbc.execute("ROLLBACK TO SAVEPOINT whole");
            equal(jdbc.queryForObject("SELECT COUNT(*) FROM chosen", Integer.class), 3);
            jdbc.execute("DROP TEMPORARY TABLE chosen");
        });
    }

    static void templates() {
        NamedParameterJdbcTemplate named = new NamedParameterJdbcTemplate(jdbc);
        JdbcClient client = JdbcClient.create(jdbc);
        jdbc.execute("CREATE TABLE stock (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) UNIQUE, n INT, at DATETIME(3), data JSON)");
        equal(Arrays.stream(jdbc.batchUpdate("INSERT INTO stock (name, n, at) VALUES (?, ?, ?)",
            IntStream.range(0, 1000).mapToObj(n -> new Object[] {"item " + n, n % 10, PLACED.plusSeconds(n)}).toList())).sum(), 1000);
        GeneratedKeyHolder key = new GeneratedKeyHolder();
        jdbc.update(connection -> {
            var statement = connection.prepareStatement("INSERT INTO stock (name, n) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS);
            statement.setString(1, "made");
            statement.setInt(2, 4);
            return statement;
        }, key);
        equal(key.getKey().longValue(), 1001L);
        equal(new SimpleJdbcInsert(jdbc).withTableName("stock").usingGeneratedKeyColumns("id")
            .executeAndReturnKey(Map.of("name", "simple", "n", 5, "data", "{\"a\": 1}")).longValue(), 1002L);
        equal(named.queryForList("SELECT name FROM stock WHERE n IN (:some) AND id > :id ORDER BY id",
            Map.of("some", List.of(4, 5), "id", 996), String.class), List.of("made", "simple"));
        equal(client.sql("SELECT n, COUNT(*) AS count FROM stock GROUP BY n ORDER BY count DESC, n LIMIT 2")
            .query((row, number) -> row.getInt("n") + ":" + row.getLong("count")).list(), List.of("4:101", "5:101"));
        equal(client.sql("UPDATE stock SET n = n + 1 WHERE name = :name").param("name", "made").update(), 1);
        equal(jdbc.queryForMap("SELECT id, at, data FROM stock WHERE id = 1").get("at"), PLACED);
        equal(jdbc.update("INSERT INTO stock (name, n) VALUES ('made', 1) ON DUPLICATE KEY UPDATE n = VALUES(n)"), 2);
        jdbc.setFetchSize(Integer.MIN_VALUE);
        int[] rows = {0};
        jdbc.query("SELECT * FROM stock", row -> { rows[0]++; });
        jdbc.setFetchSize(-1);
        equal(rows[0], 1002);
        jdbc.execute("TRUNCATE TABLE stock");
        equal(jdbc.queryForRowSet("SELECT * FROM stock").getMetaData().getColumnNames(), new String[] {"id", "name", "n", "at", "data"});
    }

    static void errors() throws Exception {
        refused(DuplicateKeyException.class, () -> jdbc.update("INSERT INTO customer (name, email) VALUES ('x', 'anna@example.com')"));
        refused(DataIntegrityViolationException.class, () -> jdbc.update("INSERT INTO customer (name, email) VALUES (NULL, 'x')"));
        refused(DataIntegrityViolationException.class, () -> jdbc.update("INSERT INTO stock (name) VALUES (REPEAT('x', 41))"));
        refused(BadSqlGrammarException.class, () -> jdbc.queryForList("SELECT nothing FROM customer"));
        refused(BadSqlGrammarException.class, () -> jdbc.execute("SELEC 1"));
        refused(org.springframework.dao.QueryTimeoutException.class, () -> {
            JdbcTemplate hasty = new JdbcTemplate(source());
            hasty.setQueryTimeout(1);
            hasty.queryForObject("SELECT COUNT(*) FROM customer WHERE SLEEP(20) = 0", Integer.class);
        });
        refused(DataIntegrityViolationException.class, () -> {
            Customer same = new Customer("Anna", "DE", 1);
            context.getBean(Customers.class).saveAndFlush(same);
        });
    }

    static void pool() throws Exception {
        HikariDataSource pool = context.getBean(HikariDataSource.class);
        List<Connection> taken = new ArrayList<>();
        for (int n = 0; n < 4; n++) {
            taken.add(pool.getConnection());
        }
        equal(pool.getHikariPoolMXBean().getActiveConnections(), 4);
        equal(taken.get(0).isValid(1), true);
        Connection first = taken.get(0);
        first.setReadOnly(true);
        first.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        first.setAutoCommit(false);
        for (Connection connection : taken) {
            connection.close();
        }
        // What the pool sets back.
        for (int n = 0; n < 4; n++) {
            try (Connection again = pool.getConnection()) {
                equal(List.of(again.isReadOnly(), again.getAutoCommit(), again.getTransactionIsolation()),
                    List.of(false, true, Connection.TRANSACTION_REPEATABLE_READ));
            }
        }
        // A connection that the server has ended is not handed out.
        long id = jdbc.queryForObject("SELECT CONNECTION_ID()", Long.class);
        new JdbcTemplate(source()).execute("KILL " + id);
        Thread.sleep(700);
        for (int n = 0; n < 4; n++) {
            equal(jdbc.queryForObject("SELECT 1", Integer.class), 1);
        }
    }

    public static class Entry {
        public Integer id;
        public String name;
        public int n;
        public LocalDateTime at;
    }

    public interface Stock {
        @Insert("INSERT INTO stock (name, n, at) VALUES (#{name}, #{n}, #{at})") @Options(useGeneratedKeys = true, keyProperty = "id")
        int add(Entry entry);
        @Insert("<script>INSERT INTO stock (name, n) VALUES <foreach collection='all' item='e' separator=','>"
            + "(#{e.name}, #{e.n})</foreach></script>")
        @Options(useGeneratedKeys = true, keyProperty = "all.id")
        int addAll(@Param("all") List<Entry> all);
        @Select("<script>SELECT * FROM stock <where><if test='name != null'>name LIKE CONCAT(#{name}, '%')</if>"
            + "<if test='least != null'>AND n >= #{least}</if></where> ORDER BY id LIMIT #{limit}</script>")
        List<Entry> find(@Param("name") String name, @Param("least") Integer least, @Param("limit") int limit);
        @Update("UPDATE stock SET n = #{n} WHERE id = #{id}") int change(@Param("id") int id, @Param("n") int n);
    }

    static void mybatis() {
        var configuration = new org.apache.ibatis.session.Configuration(
            new Environment("checks", new JdbcTransactionFactory(), source()));
        configuration.addMapper(Stock.class);
        SqlSessionFactory factory = new SqlSessionFactoryBuilder().build(configuration);
        jdbc.execute("TRUNCATE TABLE stock");
        try (SqlSession session = factory.openSession(true)) {
            Stock stock = session.getMapper(Stock.class);
            Entry entry = new Entry();
            entry.name = "alone";
            entry.n = 3;
            entry.at = PLACED;
            equal(stock.add(entry), 1);
            equal(entry.id, 1);
            List<Entry> more = new ArrayList<>();
            for (int n = 0; n < 5; n++) {
                Entry next = new Entry();
                next.name = "row " + n;
                next.n = n;
                more.add(next);
            }
            equal(stock.addAll(more), 5);
            equal(more.stream().map(next -> next.id).toList(), List.of(2, 3, 4, 5, 6));
            equal(stock.find("row", 3, 10).stream().map(next -> next.name).toList(), List.of("row 3", "row 4"));
            equal(stock.find(null, null, 1).get(0).at, PLACED);
        }
        try (SqlSession session = factory.openSession(ExecutorType.BATCH)) {
            Stock stock = session.getMapper(Stock.class);
            for (int id = 1; id <= 6; id++) {
                stock.change(id, id * 100);
            }
            equal(session.flushStatements().get(0).getUpdateCounts(), new int[] {1, 1, 1, 1, 1, 1});
            session.commit();
        }
        equal(jdbc.queryForObject("SELECT SUM(n) FROM stock", Integer.class), 2100);
    }

    static void jooq() throws Exception {
        MysqlDataSource source = (MysqlDataSource) source();
        // It sets a variable before GROUP_CONCAT, in one text.
        source.setUrl(ADDRESS + "&allowMultiQueries=true");
        try (Connection connection = source.getConnection()) {
            DSLContext create = DSL.using(connection, ON_MARIADB ? SQLDialect.MARIADB : SQLDialect.MYSQL);
            var stock = DSL.table("stock");
            var id = DSL.field("id", SQLDataType.INTEGER);
            var name = DSL.field("name", SQLDataType.VARCHAR(40));
            var n = DSL.field("n", SQLDataType.INTEGER);
            equal(create.insertInto(stock, id, name, n).values(1, "again", 7).onDuplicateKeyUpdate().set(n, 7).execute(), 2);
            equal(create.insertInto(stock, id, name, n).values(1, "again", 8).onDuplicateKeyIgnore().execute(), 0);
            equal(create.select(id, DSL.rowNumber().over(DSL.orderBy(n.desc())), DSL.sum(n).over()).from(stock).orderBy(n.desc()).limit(1)
                .fetchOne().intoList(), List.of(6, 1, new BigDecimal("2007")));
            equal(create.select(DSL.count(), DSL.countDistinct(n), DSL.groupConcat(name).orderBy(id).separator("|")).from(stock)
                .where(n.between(100).and(400).and(name.likeIgnoreCase("ROW%"))).fetchOne().value3(), "row 0|row 1|row 2");
            equal(create.with("big").as(DSL.select(id).from(stock).where(n.gt(300))).selectCount().from("big").fetchOne().value1(), 3);
            equal(create.select(id).from(stock).where(n.gt(500)).unionAll(DSL.select(id).from(stock).where(n.lt(10))).orderBy(1)
                .fetch(id), List.of(1, 6));
            create.createTemporaryTable("picked").column("id", SQLDataType.INTEGER.nullable(false)).column("name", SQLDataType.VARCHAR(40))
                .constraints(DSL.primaryKey("id")).execute();
            equal(create.insertInto(DSL.table("picked")).select(DSL.select(id, name).from(stock).where(n.gt(100))).execute(), 5);
            equal(create.select(DSL.field("picked.name")).from("picked").join("stock").using(id).where(n.eq(600))
                .fetchOne().value1(), "row 4");
            equal(create.update(stock).set(n, n.plus(1)).where(id.in(DSL.select(DSL.field("id", SQLDataType.INTEGER)).from("picked"))).execute(), 5);
            create.dropTemporaryTable("picked").execute();
            equal(Arrays.stream(create.batch(create.update(stock).set(n, (Integer) null).where(id.eq((Integer) null)))
                .bind(1, 2).bind(2, 3).execute()).sum(), 2);
            equal(create.meta().getTables("customer").size() > 0, true);
        }
    }

    /** Classes that jOOQ writes for the tables there are. */
    static void classes() throws Exception {
        Path folder = Files.createTempDirectory("jooq");
        try {
            org.jooq.codegen.GenerationTool.generate(new org.jooq.meta.jaxb.Configuration()
                .withLogging(org.jooq.meta.jaxb.Logging.ERROR)
                .withOnError(org.jooq.meta.jaxb.OnError.FAIL)
                .withJdbc(new org.jooq.meta.jaxb.Jdbc().withUrl(ADDRESS).withUser(System.getenv("CHECK_USER"))
                    .withPassword(System.getenv("CHECK_PASSWORD")))
                .withGenerator(new org.jooq.meta.jaxb.Generator()
                    .withDatabase(new org.jooq.meta.jaxb.Database().withName("org.jooq.meta.mysql.MySQLDatabase").withInputSchema(DATABASE))
                    .withTarget(new org.jooq.meta.jaxb.Target().withPackageName("made").withDirectory(folder.toString()))));
            String made = Files.readString(folder.resolve("made/tables/Purchase.java"));
            for (String part : List.of("TableField<PurchaseRecord, Long> ID", "SQLDataType.DECIMAL(12, 2).nullable(false)",
                "getPrimaryKey()", "PURCHASE_PLACED", "SQLDataType.BINARY(16)", "PurchaseState")) {
                equal(List.of(part, made.contains(part)), List.of(part, true));
            }
            equal(Files.readString(folder.resolve("made/tables/Customer.java")).contains("KEY_CUSTOMER_CUSTOMER_EMAIL"), true);
        } finally {
            try (var files = Files.walk(folder)) {
                files.sorted(java.util.Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
    }

    static void liquibase() throws Exception {
        // It says what it does where it logs, not on standard output.
        Scope.child(Map.of(Scope.Attr.ui.name(), new LoggerUIService()), SpringChecks::changeLog);
    }

    static void changeLog() throws Exception {
        try (Connection connection = source().getConnection()) {
            Database database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
            Liquibase changes = new Liquibase("db/changelog.yaml", new ClassLoaderResourceAccessor(), database);
            changes.setShowSummary(UpdateSummaryEnum.OFF);
            changes.validate();
            equal(changes.listUnrunChangeSets(new Contexts(), new LabelExpression()).size(), 3);
            changes.update(new Contexts());
            equal(changes.listUnrunChangeSets(new Contexts(), new LabelExpression()).size(), 0);
            changes.update(new Contexts());
            equal(jdbc.queryForList("SELECT CONCAT(name, ' ', height, ' ', open + 0) FROM shelf", String.class), List.of("low 0.50 1"));
            equal(jdbc.queryForList("SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
                + " AND table_name = 'item' ORDER BY ordinal_position", String.class), List.of("shelf", "number", "colour", "title"));
            // What is there, as its tools that write and compare change logs see it.
            DatabaseSnapshot found = SnapshotGeneratorFactory.getInstance()
                .createSnapshot(database.getDefaultSchema(), database, new SnapshotControl(database));
            Table shelf = found.get(Table.class).stream().filter(table -> table.getName().equals("shelf")).findFirst().orElseThrow();
            equal(shelf.getColumns().stream().map(column -> column.getName()).toList(),
                List.of("id", "name", "height", "open", "made", "picture", "text"));
            equal(List.of(shelf.getPrimaryKey().getColumnNames(), shelf.getUniqueConstraints().size()), List.of("id", 1));
            changes.rollback("first", new Contexts(), new LabelExpression());
            equal(jdbc.queryForList("SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
                + " AND table_name = 'item' ORDER BY ordinal_position", String.class), List.of("shelf", "number", "label"));
            equal(changes.listLocks().length, 0);
            changes.clearCheckSums();
            changes.dropAll();
            equal(jdbc.queryForList("SHOW TABLES", String.class).contains("shelf"), false);
        }
    }

    static void clean() {
        context.close();
        migrations("classpath:db/migration").clean();
    }
}
