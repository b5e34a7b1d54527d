<?php
// What applications of Laravel do with Eloquent: eloquent_checks.php FOLDER, that of PHP's packages.

set_include_path($argv[1] . PATH_SEPARATOR . get_include_path());
error_reporting(E_ALL & ~E_DEPRECATED);
require __DIR__ . '/shared.php';
require 'Illuminate/Database/autoload.php';

use Illuminate\Database\Capsule\Manager as DB;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Database\Eloquent\ModelNotFoundException;
use Illuminate\Database\Eloquent\SoftDeletes;
use Illuminate\Database\Schema\Blueprint;

class Author extends Model
{
    protected $guarded = [];
    protected $casts = ['born' => 'date', 'alive' => 'boolean'];
    public function books() { return $this->hasMany(Book::class); }
    public function tags() { return $this->belongsToMany(Tag::class); }
}

class Book extends Model
{
    use SoftDeletes;
    protected $guarded = [];
    protected $casts = ['data' => 'array', 'price' => 'decimal:2', 'published' => 'datetime'];
    public function author() { return $this->belongsTo(Author::class); }
}

class Tag extends Model
{
    protected $guarded = [];
    public $timestamps = false;
}

$capsule = new DB();
$capsule->addConnection([
    'driver' => 'mysql', 'host' => getenv('CHECK_HOST'), 'port' => getenv('CHECK_PORT'), 'database' => getenv('CHECK_DATABASE'),
    'username' => getenv('CHECK_USER'), 'password' => getenv('CHECK_PASSWORD'), 'charset' => 'utf8mb4',
    // Laravel's own default, utf8mb4_unicode_ci, counts no case.
    'collation' => 'utf8mb4_bin', 'prefix' => '', 'strict' => true, 'engine' => 'InnoDB',
]);
$capsule->setAsGlobal();
$capsule->bootEloquent();

$checks = [
    'migrate' => function () {
        $schema = DB::schema();
        $schema->create('authors', function (Blueprint $table) {
            $table->id();
            $table->string('name', 100)->unique();
            $table->date('born')->nullable()->comment("it's a day");
            $table->boolean('alive')->default(true);
            $table->unsignedInteger('score')->default(0);
            $table->timestamps();
        });
        $schema->create('books', function (Blueprint $table) {
            $table->bigIncrements('id');
            $table->foreignId('author_id')->constrained()->onDelete('cascade');
            $table->string('title')->index();
            $table->decimal('price', 10, 2)->nullable();
            $table->dateTime('published', 6)->nullable();
            $table->enum('kind', ['novel', 'atlas'])->default('novel');
            $table->json('data')->nullable();
            $table->uuid('reference')->nullable();
            $table->longText('text')->nullable();
            $table->binary('cover')->nullable();
            $table->decimal('gross', 12, 4)->storedAs('price * 1.19');
            $table->softDeletes();
            $table->timestamps();
            $table->index(['kind', 'price'], 'kind_price');
        });
        $schema->create('tags', function (Blueprint $table) {
            $table->id();
            $table->string('name', 30)->unique();
        });
        $schema->create('author_tag', function (Blueprint $table) {
            $table->foreignId('author_id');
            $table->foreignId('tag_id');
            $table->primary(['author_id', 'tag_id']);
        });
        equal($schema->hasTable('books'), true);
        equal($schema->hasColumn('books', 'gross'), true);
        equal(array_slice($schema->getColumnListing('tags'), 0, 2), ['id', 'name']);
        // The tables in which sessions, caches, jobs and migrations are kept.
        $schema->create('migrations', function (Blueprint $table) {
            $table->increments('id');
            $table->string('migration');
            $table->integer('batch');
        });
        $schema->create('jobs', function (Blueprint $table) {
            $table->bigIncrements('id');
            $table->string('queue')->index();
            $table->longText('payload');
            $table->unsignedTinyInteger('attempts');
            $table->unsignedInteger('reserved_at')->nullable();
            $table->unsignedInteger('available_at');
            $table->unsignedInteger('created_at');
        });
    },
    'rows' => function () {
        $anna = Author::create(['name' => 'Anna', 'born' => '1970-02-28']);
        $first = $anna->books()->create(['title' => 'first', 'price' => 10.5, 'published' => '2026-02-03 04:05:06.123456',
            'data' => ['a' => [1, null, 'ü']], 'text' => str_repeat('ü', 100000), 'cover' => "\0\xff"]);
        $first = Book::find($first->id);
        equal([$first->price, $first->data, strlen($first->text), $first->cover, $first->gross, $first->kind],
            ['10.50', ['a' => [1, null, 'ü']], 200000, "\0\xff", '12.4950', 'novel']);
        equal($first->author->born->format('Y-m-d'), '1970-02-28');
        $anna->books()->createMany([['title' => 'second', 'price' => 20]]);
        Author::insert([['name' => 'Bert', 'score' => 3], ['name' => 'Cara', 'score' => 7]]);
        $rows = [];
        for ($n = 1; $n <= 500; $n++) {
            $rows[] = ['author_id' => 2, 'title' => "volume $n", 'price' => $n];
        }
        equal(Book::insert($rows), true);
        $anna->tags()->attach(Tag::create(['name' => 'new'])->id);
        $anna->tags()->sync([Tag::create(['name' => 'old'])->id]);
        equal($anna->tags()->pluck('name')->all(), ['old']);
        equal(DB::table('tags')->insertGetId(['name' => 'third']), 3);
        equal(DB::table('tags')->insertOrIgnore([['name' => 'third'], ['name' => 'fourth']]), 1);
    },
    'queries' => function () {
        equal(Author::with('books')->where('name', 'Anna')->first()->books->count(), 2);
        equal(Author::withCount('books')->orderBy('name')->pluck('books_count', 'name')->map(fn ($count) => (int) $count)->all(), ['Anna' => 2, 'Bert' => 500, 'Cara' => 0]);
        equal(Author::withSum('books', 'price')->orderBy('name')->get()->pluck('books_sum_price')->all(), ['30.50', '125250.00', null]);
        equal(Author::has('books', '>', 10)->pluck('name')->all(), ['Bert']);
        equal(Author::whereHas('books', fn ($query) => $query->where('price', '>', 499))->pluck('name')->all(), ['Bert']);
        equal(Author::doesntHave('books')->pluck('name')->all(), ['Cara']);
        equal(Book::whereBetween('price', [5, 7])->orWhere(fn ($query) => $query->where('title', 'first')->whereNotNull('data'))
            ->orderBy('price')->pluck('title')->all(), ['volume 5', 'volume 6', 'volume 7', 'first']);
        $page = Book::orderBy('id')->paginate(50, ['*'], 'page', 3);
        equal([$page->total(), $page->items()[0]->title], [502, 'volume 99']);
        equal(Book::selectRaw('author_id, COUNT(*) AS n, SUM(price) AS total')->groupBy('author_id')->having('n', '>', 1)
            ->orderByDesc('total')->get()->pluck('total', 'author_id')->all(), [2 => '125250.00', 1 => '30.50']);
        equal(DB::table('books')->joinSub(DB::table('books')->selectRaw('author_id, MAX(price) AS top')->groupBy('author_id'), 'best',
            fn ($join) => $join->on('books.author_id', 'best.author_id')->on('books.price', 'best.top'))->orderBy('title')->pluck('title')->all(),
            ['second', 'volume 500']);
        equal(Author::addSelect(['last' => Book::select('title')->whereColumn('author_id', 'authors.id')->orderByDesc('price')->limit(1)])
            ->orderBy('name')->get()->pluck('last')->all(), ['second', 'volume 500', null]);
        equal(DB::table('tags')->select('name')->union(DB::table('authors')->select('name'))->orderBy('name')->limit(2)->pluck('name')->all(), ['Anna', 'Bert']);
        equal(Book::whereYear('published', 2026)->whereDate('published', '2026-02-03')->count(), 1);
        equal(Book::latest('price')->value('title'), 'volume 500');
        equal(DB::table('books')->distinct()->count('author_id'), 2);
        equal(Book::whereExists(fn ($query) => $query->select(DB::raw(1))->from('authors')->whereColumn('authors.id', 'books.author_id')->where('score', 3))->count(), 500);
        $seen = 0;
        Book::chunkById(200, function ($books) use (&$seen) { $seen += count($books); });
        equal($seen, 502);
        equal(Book::cursor()->count(), 502);
    },
    'changes' => function () {
        equal(Author::where('name', 'Bert')->increment('score', 2), 1);
        equal(Book::where('price', '<=', 10)->update(['price' => DB::raw('price + 0.5')]), 10);
        equal(Author::updateOrCreate(['name' => 'Cara'], ['score' => 9])->score, 9);
        equal(Author::firstOrCreate(['name' => 'Dora'])->wasRecentlyCreated, true);
        equal(DB::table('tags')->upsert([['id' => 1, 'name' => 'newer'], ['id' => 99, 'name' => 'rare']], ['id'], ['name']), 3);
        equal(Book::where('price', '>', 400)->delete(), 100);
        equal([Book::count(), Book::withTrashed()->count()], [402, 502]);
        equal(Book::onlyTrashed()->where('price', 500)->restore(), 1);
        equal(Book::onlyTrashed()->forceDelete(), 99);
        equal(DB::table('books')->join('authors', 'authors.id', '=', 'books.author_id')->where('authors.name', 'Anna')->update(['books.kind' => 'atlas']), 2);
        equal(DB::table('tags')->where('id', 99)->orderBy('id')->limit(1)->delete(), 1);
        DB::table('jobs')->truncate();
    },
    'errors' => function () {
        refused(1062, fn () => Author::create(['name' => 'Anna']));
        refused(1364, fn () => Book::create(['title' => 'x']));
        refused(1406, fn () => Author::create(['name' => str_repeat('x', 101)]));
        refused(1054, fn () => Author::where('nothing', 1)->get());
        refused(1146, fn () => DB::table('nothing')->get());
        try {
            Author::findOrFail(1000);
        } catch (ModelNotFoundException $error) {
            return;
        }
        throw new Exception('it was found');
    },
    'transactions' => function () {
        DB::connection()->transaction(function () {
            Author::where('name', 'Anna')->lockForUpdate()->first();
            DB::statement('CREATE TEMPORARY TABLE chosen AS SELECT id, title FROM books WHERE price > 200');
            try {
                DB::connection()->transaction(function () {
                    DB::table('chosen')->delete();
                    throw new RuntimeException();
                });
            } catch (RuntimeException $error) {
            }
            equal(DB::table('chosen')->join('books', 'books.id', '=', 'chosen.id')->count(), 201);
            DB::statement('DROP TEMPORARY TABLE chosen');
        });
        try {
            DB::connection()->transaction(function () {
                Tag::create(['name' => 'lost']);
                throw new RuntimeException();
            });
        } catch (RuntimeException $error) {
        }
        // Shared tables keep what was added, as those of MyISAM do.
        equal(Tag::where('name', 'lost')->count(), $GLOBALS['mariadb'] ? 0 : 1);
        // A job is taken from the queue.
        DB::table('jobs')->insert(['queue' => 'default', 'payload' => '{}', 'attempts' => 0, 'available_at' => 1, 'created_at' => 1]);
        equal(DB::connection()->transaction(fn () => DB::table('jobs')->where('queue', 'default')->whereNull('reserved_at')->where('available_at', '<=', 2)
            ->orderBy('id')->lock('FOR UPDATE')->first()->attempts), 0);
    },
    'alter' => function () {
        $schema = DB::schema();
        $schema->table('authors', function (Blueprint $table) {
            $table->string('country', 2)->default('DE')->after('name');
            $table->index(['country', 'score']);
            $table->unsignedBigInteger('chief')->nullable();
        });
        equal(Author::first()->country, 'DE');
        $schema->table('authors', function (Blueprint $table) {
            $table->dropIndex(['country', 'score']);
            $table->dropColumn(['country', 'chief']);
            $table->dropUnique(['name']);
        });
        $schema->rename('tags', 'marks');
        $schema->disableForeignKeyConstraints();
        $schema->dropAllTables();
        $schema->enableForeignKeyConstraints();
        equal($schema->hasTable('books'), false);
    },
];
run($checks);
