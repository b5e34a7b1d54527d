<?php
// What applications of Symfony do with Doctrine: doctrine_checks.php FOLDER, that of PHP's packages.

set_include_path($argv[1] . PATH_SEPARATOR . get_include_path());
error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED);
require __DIR__ . '/shared.php';
require 'Doctrine/ORM/autoload.php';

use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\LockMode;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\Pagination\Paginator;
use Doctrine\ORM\Tools\SchemaTool;
use Doctrine\ORM\Tools\SchemaValidator;

#[ORM\Entity, ORM\Table(name: 'authors', options: ['comment' => 'who writes']),
  ORM\UniqueConstraint(name: 'author_name', columns: ['name'])]
class Author
{
    #[ORM\Id, ORM\GeneratedValue, ORM\Column] public ?int $id = null;
    #[ORM\Column(length: 100)] public string $name;
    #[ORM\Column(type: 'date_immutable', nullable: true)] public ?DateTimeImmutable $born = null;
    #[ORM\Column(options: ['default' => 0, 'unsigned' => true])] public int $score = 0;
    #[ORM\OneToMany(targetEntity: Book::class, mappedBy: 'author', cascade: ['persist', 'remove'])] public $books;
    #[ORM\ManyToMany(targetEntity: Tag::class)] public $tags;

    public function __construct(string $name, int $score = 0)
    {
        $this->name = $name;
        $this->score = $score;
        $this->books = new Doctrine\Common\Collections\ArrayCollection();
        $this->tags = new Doctrine\Common\Collections\ArrayCollection();
    }
}

#[ORM\Entity, ORM\Table(name: 'books'), ORM\Index(name: 'kind_price', columns: ['kind', 'price'])]
class Book
{
    #[ORM\Id, ORM\GeneratedValue, ORM\Column(type: 'bigint')] public $id = null;
    #[ORM\Version, ORM\Column(type: 'integer')] public int $version = 1;
    #[ORM\ManyToOne(targetEntity: Author::class, inversedBy: 'books'), ORM\JoinColumn(nullable: false)] public Author $author;
    #[ORM\Column(length: 200)] public string $title;
    #[ORM\Column(type: 'decimal', precision: 10, scale: 2)] public string $price;
    #[ORM\Column(length: 10)] public string $kind = 'novel';
    #[ORM\Column(type: 'datetime_immutable')] public DateTimeImmutable $published;
    #[ORM\Column(type: 'json', nullable: true)] public ?array $data = null;
    #[ORM\Column(type: 'guid', nullable: true)] public ?string $reference = null;
    #[ORM\Column(type: 'text')] public string $text = '';
    #[ORM\Column] public bool $sold = false;
    #[ORM\Column] public float $weight = 0.1;

    public function __construct(Author $author, string $title, string $price)
    {
        $this->author = $author;
        $this->title = $title;
        $this->price = $price;
        $this->published = new DateTimeImmutable('2026-02-03 04:05:06');
        $author->books[] = $this;
    }
}

#[ORM\Entity, ORM\Table(name: 'tags')]
class Tag
{
    #[ORM\Id, ORM\GeneratedValue, ORM\Column] public ?int $id = null;
    #[ORM\Column(length: 30, unique: true)] public string $name;

    public function __construct(string $name)
    {
        $this->name = $name;
    }
}

function manager(): EntityManager
{
    static $manager = null;
    if ($manager === null || !$manager->isOpen()) {
        $config = ORMSetup::createAttributeMetadataConfiguration([], true);
        $connection = DriverManager::getConnection([
            'driver' => 'pdo_mysql', 'host' => getenv('CHECK_HOST'), 'port' => (int) getenv('CHECK_PORT'), 'dbname' => getenv('CHECK_DATABASE'),
            'user' => getenv('CHECK_USER'), 'password' => getenv('CHECK_PASSWORD'), 'charset' => 'utf8mb4',
            // Doctrine's own default, utf8mb4_unicode_ci, counts no case.
            'defaultTableOptions' => ['charset' => 'utf8mb4', 'collate' => 'utf8mb4_bin'],
        ]);
        $connection->setNestTransactionsWithSavepoints(true);
        $manager = new EntityManager($connection, $config);
    }
    return $manager;
}

function entities(): array
{
    return array_map(fn ($name) => manager()->getClassMetadata($name), [Author::class, Book::class, Tag::class]);
}

function asked(string $dql, array $values = []): array
{
    return manager()->createQuery($dql)->setParameters($values)->getResult();
}

run([
    'schema' => function () {
        $tool = new SchemaTool(manager());
        $tool->createSchema(entities());
        $tables = manager()->getConnection()->createSchemaManager()->listTableNames();
        sort($tables);
        equal($tables, ['author_tag', 'authors', 'books', 'tags']);
        $columns = manager()->getConnection()->createSchemaManager()->listTableColumns('books');
        equal([$columns['price']->getPrecision(), $columns['id']->getAutoincrement(), $columns['title']->getLength()], [10, true, 200]);
        $indexes = manager()->getConnection()->createSchemaManager()->listTableIndexes('books');
        equal($indexes['kind_price']->getColumns(), ['kind', 'price']);
        foreach (entities() as $entity) {
            equal((new SchemaValidator(manager()))->validateClass($entity), []);
        }
        // Foreign keys are missed, and nothing else.
        $missed = $tool->getUpdateSchemaSql(entities());
        equal(array_values(array_filter($missed, fn ($sql) => $GLOBALS['mariadb'] || !str_contains($sql, 'FOREIGN KEY'))), []);
    },
    'rows' => function () {
        $anna = new Author('Anna', 5);
        $anna->born = new DateTimeImmutable('1970-02-28');
        $first = new Book($anna, 'first', '10.50');
        $first->data = ['a' => [1, null, 'ü']];
        $first->text = str_repeat('ü', 100000);
        new Book($anna, 'second', '20.00');
        $anna->tags[] = $tag = new Tag('new');
        manager()->persist($tag);
        manager()->persist($anna);
        $bert = new Author('Bert', 3);
        for ($n = 1; $n <= 200; $n++) {
            new Book($bert, "volume $n", "$n");
        }
        manager()->persist($bert);
        manager()->persist(new Author('Cara'));
        manager()->flush();
        manager()->clear();
        $found = manager()->getRepository(Book::class)->findOneBy(['title' => 'first']);
        equal([$found->price, $found->data, strlen($found->text), $found->published->format('c'), $found->weight, $found->sold],
            ['10.50', ['a' => [1, null, 'ü']], 200000, '2026-02-03T04:05:06+00:00', 0.1, false]);
        equal($found->author->born->format('Y-m-d'), '1970-02-28');
        equal($found->author->tags->count(), 1);
    },
    'queries' => function () {
        equal(array_column(asked('SELECT a.name, COUNT(b.id) AS n, SUM(b.price) AS total FROM Author a LEFT JOIN a.books b GROUP BY a.id, a.name ORDER BY a.name'), 'total'),
            ['30.50', '20100.00', null]);
        equal(count(asked('SELECT a, b FROM Author a JOIN a.books b WHERE b.price > :least', ['least' => 15])), 2);
        equal(array_column(asked('SELECT a.name FROM Author a WHERE NOT EXISTS (SELECT b FROM Book b WHERE b.author = a)'), 'name'), ['Cara']);
        equal(array_column(asked('SELECT a.name FROM Author a WHERE SIZE(a.books) > 100'), 'name'), ['Bert']);
        equal(array_column(asked('SELECT b.title FROM Book b WHERE b.price = (SELECT MAX(c.price) FROM Book c WHERE c.author = b.author) ORDER BY b.title'), 'title'),
            ['second', 'volume 200']);
        equal(asked("SELECT CASE WHEN b.price > 100 THEN 'dear' ELSE 'cheap' END AS kind, COUNT(b) AS n FROM Book b GROUP BY kind ORDER BY kind")[1]['n'], 100);
        // Two queries of a paginator: numbers of the page, and how many there are.
        $query = manager()->createQuery('SELECT a, b FROM Author a LEFT JOIN a.books b ORDER BY a.name')->setFirstResult(1)->setMaxResults(1);
        $page = new Paginator($query, true);
        equal([count($page), iterator_to_array($page)[0]->name], [3, 'Bert']);
        equal(manager()->getRepository(Book::class)->count(['kind' => 'novel']), 202);
        equal(count(manager()->getRepository(Book::class)->findBy(['author' => 1], ['price' => 'DESC'], 10, 1)), 1);
        $rows = 0;
        foreach (manager()->createQuery('SELECT b FROM Book b')->toIterable() as $book) {
            $rows++;
        }
        equal($rows, 202);
        equal(manager()->getConnection()->createQueryBuilder()->select('a.name')->from('authors', 'a')->where('a.id IN (:ids)')
            ->setParameter('ids', [1, 3], Doctrine\DBAL\Connection::PARAM_INT_ARRAY)->orderBy('a.name')->fetchFirstColumn(), ['Anna', 'Cara']);
    },
    'changes' => function () {
        manager()->clear();
        $book = manager()->find(Book::class, 1);
        $book->title = 'changed';
        manager()->flush();
        equal($book->version, 2);
        equal(manager()->createQuery("UPDATE Book b SET b.price = b.price + 1 WHERE b.price <= 10")->execute(), 10);
        equal(manager()->createQuery('DELETE FROM Book b WHERE b.price > 150')->execute(), 50);
        manager()->getConnection()->executeStatement('UPDATE books SET version = 9 WHERE id = 1');
        $book->title = 'late';
        try {
            manager()->flush();
        } catch (Doctrine\ORM\OptimisticLockException $error) {
            return;
        }
        throw new Exception('a stale row was saved');
    },
    'errors' => function () {
        $error = refused(1062, function () {
            manager()->persist(new Author('Anna'));
            manager()->flush();
        });
        equal($error instanceof Doctrine\DBAL\Exception\UniqueConstraintViolationException, true);
        $error = refused(1146, fn () => manager()->getConnection()->executeQuery('SELECT * FROM nothing'));
        equal($error instanceof Doctrine\DBAL\Exception\TableNotFoundException, true);
        refused(1048, fn () => manager()->getConnection()->insert('authors', ['name' => null, 'score' => 1]));
        refused(1064, fn () => manager()->getConnection()->executeStatement('SELEC 1'));
    },
    'transactions' => function () {
        manager()->wrapInTransaction(function (EntityManager $manager) {
            $manager->find(Author::class, 1, LockMode::PESSIMISTIC_WRITE);
            $connection = $manager->getConnection();
            $connection->executeStatement('CREATE TEMPORARY TABLE chosen AS SELECT id FROM books WHERE price > 100');
            $connection->beginTransaction();
            $connection->executeStatement('DELETE FROM chosen');
            $connection->rollBack();
            equal((int) $connection->fetchOne('SELECT COUNT(*) FROM chosen JOIN books USING (id)'), 50);
            $connection->executeStatement('DROP TEMPORARY TABLE chosen');
        });
        try {
            manager()->wrapInTransaction(function (EntityManager $manager) {
                $manager->persist(new Tag('lost'));
                $manager->flush();
                throw new RuntimeException();
            });
        } catch (RuntimeException $error) {
        }
        // Shared tables keep what was added, as those of MyISAM do.
        equal(manager()->getRepository(Tag::class)->count(['name' => 'lost']), $GLOBALS['mariadb'] ? 0 : 1);
    },
    'drop' => function () {
        $tool = new SchemaTool(manager());
        $tool->dropSchema(entities());
        equal(manager()->getConnection()->createSchemaManager()->listTableNames(), []);
    },
]);
