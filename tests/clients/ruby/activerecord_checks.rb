# What applications of Rails do with ActiveRecord over mysql2.

require "active_record"
require "logger"

ON_MARIADB = ENV["CHECK_SERVER"] == "mariadb"
# MariaDB's documents are texts.
DATA = ON_MARIADB ? '{"a": [1]}' : { "a" => [1, nil, "ü"] }
PUBLISHED = Time.utc(2026, 2, 3, 4, 5, 6, 123_456)

ActiveRecord::Base.establish_connection(
  adapter: "mysql2", host: ENV["CHECK_HOST"], port: ENV["CHECK_PORT"].to_i, username: ENV["CHECK_USER"],
  password: ENV["CHECK_PASSWORD"], database: ENV["CHECK_DATABASE"], encoding: "utf8mb4", pool: 5
)
ActiveRecord::Migration.verbose = false

class Author < ActiveRecord::Base
  has_many :books, dependent: :destroy
  has_and_belongs_to_many :tags
  validates :name, presence: true, uniqueness: true
  enum state: { draft: 0, shown: 1 }
end

class Book < ActiveRecord::Base
  belongs_to :author, counter_cache: true
  scope :dear, -> { where("price > ?", 15) }
end

class Tag < ActiveRecord::Base
  has_and_belongs_to_many :authors
end

class First < ActiveRecord::Migration[6.1]
  def change
    create_table :authors, comment: "who writes" do |t|
      t.string :name, limit: 100, null: false, index: { unique: true }
      t.date :born
      t.integer :state, default: 0, null: false, limit: 1
      t.integer :books_count, default: 0, null: false
      t.boolean :alive, default: true
      t.timestamps
    end
    create_table :books do |t|
      t.references :author, null: false, foreign_key: true
      t.string :title, null: false, default: ""
      t.decimal :price, precision: 10, scale: 2
      t.datetime :published, precision: 6
      t.text :text, size: :long
      t.binary :cover
      t.json :data
      t.float :weight
      t.bigint :sold, unsigned: true
      t.virtual :gross, type: :decimal, precision: 12, scale: 4, as: "price * 1.19", stored: true
      t.integer :lock_version, default: 0
      t.index %i[price title], name: "price_title", length: { title: 20 }, order: { price: :desc }
      t.check_constraint "price >= 0", name: "price_sound"
    end
    create_table(:tags) { |t| t.string :name, index: { unique: true } }
    create_join_table :authors, :tags
  end
end

class Second < ActiveRecord::Migration[6.1]
  def change
    add_column :authors, :country, :string, limit: 2, default: "DE", null: false, after: :name
    add_index :authors, %i[country name]
    rename_column :authors, :born, :birthday
    change_column_null :books, :title, true
    change_column_default :books, :title, from: "", to: "none"
    change_table(:books, bulk: true) do |t|
      t.string :isbn, limit: 20
      t.index :isbn
    end
  end
end

def equal(found, expected)
  raise "#{found.inspect}, expected #{expected.inspect}" unless found == expected
end

def refused(kind)
  yield
rescue kind
  nil
else
  raise "it was not refused"
end

def connection
  ActiveRecord::Base.connection
end

# By the migrator itself: its lock, its own tables.
def migrations(*all)
  made = all.each_with_index.map do |migration, place|
    ActiveRecord::MigrationProxy.new(migration.name, place + 1, "", "").tap { |proxy| proxy.define_singleton_method(:migration) { migration.new(name, version) } }
  end
  ActiveRecord::Migrator.new(:up, made, ActiveRecord::SchemaMigration).migrate
end

CHECKS = {
  migrate: lambda do
    migrations(First)
    equal connection.tables.sort - ["ar_internal_metadata"], %w[authors authors_tags books schema_migrations tags]
    equal connection.table_comment("authors"), "who writes"
    columns = connection.columns("books").map { |column| [column.name, column.type, column.limit, column.null] }
    equal columns.assoc("price"), ["price", :decimal, nil, true]
    equal columns.assoc("text"), ["text", :text, 4_294_967_295, true]
    equal connection.columns("books").find { |column| column.name == "gross" }.virtual?, true
    index = connection.indexes("books").find { |one| one.name == "price_title" }
    equal index.columns, %w[price title]
    equal index.lengths, { "title" => 20 }
    equal connection.check_constraints("books").map(&:name) - ["data"], ["price_sound"]
    equal connection.primary_key("books"), "id"
    equal connection.foreign_keys("books").size, ON_MARIADB ? 1 : 0
  end,
  rows: lambda do
    anna = Author.create!(name: "Anna", born: Date.new(1970, 2, 28))
    first = anna.books.create!(title: "first", price: "10.50", published: PUBLISHED, text: "ü" * 100_000, cover: "\0\xff".b,
                               data: DATA, weight: 0.1, sold: 18_446_744_073_709_551_615)
    first = Book.find(first.id)
    equal [first.price, first.published, first.text.size, first.cover, first.weight, first.sold],
          [BigDecimal("10.5"), PUBLISHED, 100_000, "\0\xff".b, 0.1, 18_446_744_073_709_551_615]
    equal first.data, DATA
    equal first.gross, BigDecimal("12.495")
    anna.books.create!(title: "second", price: 20)
    Author.create!([{ name: "Bert", state: :shown }, { name: "Cara" }])
    equal Author.shown.pluck(:name), ["Bert"]
    anna.tags << Tag.create!(name: "new") << Tag.create!(name: "old")
    Book.insert_all((1..500).map { |n| { author_id: 2, title: "volume #{n}", price: n } })
    equal Book.count, 502
    equal anna.reload.books_count, 2
  end,
  queries: lambda do
    equal Book.dear.where(author: Author.where(name: "Anna")).pluck(:title), ["second"]
    equal Author.includes(:books).where(books: { title: "first" }).references(:books).map(&:name), ["Anna"]
    equal Author.left_joins(:books).group(:name).order(:name).count("books.id"), { "Anna" => 2, "Bert" => 500, "Cara" => 0 }
    equal Author.joins(:tags).distinct.pluck(:name), ["Anna"]
    equal Book.group(:author_id).having("COUNT(*) > 1").order("sum_price DESC").sum(:price), { 2 => 125_250, 1 => BigDecimal("30.5") }
    equal Book.where(price: 5..7).or(Book.where(title: "first")).order(:price).pluck(:title), ["volume 5", "volume 6", "volume 7", "first"]
    equal Book.order(price: :desc).limit(2).offset(1).pluck(:price), [499, 498]
    equal Author.where.missing(:books).pluck(:name), ["Cara"]
    equal Book.where("price > (?)", Book.select("AVG(price)")).count, 251
    equal Book.find_each(batch_size: 200).count, 502
    equal Book.average(:price).round(2), BigDecimal("249.56")
    equal Author.exists?(name: "Dora"), false
    equal Book.from(Book.select(:author_id, "ROW_NUMBER() OVER (PARTITION BY author_id ORDER BY price DESC) AS place"), :b).where("place = 1").count, 2
    equal Author.order(Arel.sql("FIELD(name, 'Cara', 'Anna', 'Bert')")).pluck(:name), %w[Cara Anna Bert]
    equal Book.where("title LIKE ?", "#{Book.sanitize_sql_like("volume 49")}%").count, 11
    equal Book.where(author_id: 1).explain.include?("EXPLAIN"), true
  end,
  changes: lambda do
    equal Book.where(author_id: 2).where("price <= 10").update_all("price = price + 0.5"), 10
    one = Book.find_by!(title: "first")
    other = Book.find(one.id)
    one.update!(title: "changed")
    refused(ActiveRecord::StaleObjectError) { other.update!(title: "late") }
    Author.find(1).increment!(:books_count)
    Tag.upsert_all([{ id: 1, name: "newer" }, { id: 9, name: "rare" }])
    equal Tag.order(:id).pluck(:name), %w[newer old rare]
    Book.insert_all([{ id: 1, author_id: 1, title: "twice" }])
    equal Book.find(1).title, "changed"
    equal Book.where("price > 400").delete_all, 100
    Author.find_or_create_by!(name: "Dora").touch
    Author.find_by!(name: "Dora").destroy!
    equal Author.reset_counters(1, :books), true
  end,
  errors: lambda do
    refused(ActiveRecord::RecordNotUnique) { Author.new(name: "Anna").save!(validate: false) }
    refused(ActiveRecord::NotNullViolation) { Author.new.save!(validate: false) }
    refused(ActiveRecord::ValueTooLong) { Author.new(name: "x" * 101).save!(validate: false) }
    refused(ActiveRecord::RangeError) { connection.execute("INSERT INTO authors (name, state, created_at, updated_at) VALUES ('x', 300, NOW(), NOW())") }
    refused(ActiveRecord::StatementInvalid) { Book.where("nothing = 1").to_a }
    refused(ActiveRecord::StatementInvalid) { Book.create!(author_id: 1, price: -1) }
    refused(ActiveRecord::RecordNotFound) { Book.find(0) }
  end,
  transactions: lambda do
    Author.transaction do
      Author.lock.find(1).update!(born: Date.new(1971, 1, 1))
      connection.execute("CREATE TEMPORARY TABLE chosen AS SELECT id, title FROM books WHERE price > 200")
      Author.transaction(requires_new: true) do
        connection.execute("DELETE FROM chosen")
        raise ActiveRecord::Rollback
      end
      equal connection.select_value("SELECT COUNT(*) FROM chosen JOIN books USING (id)"), 200
      connection.execute("DROP TEMPORARY TABLE chosen")
    end
    Author.transaction do
      Tag.create!(name: "lost")
      raise ActiveRecord::Rollback
    end
    # Shared tables keep what was added, as those of MyISAM do.
    equal Tag.where(name: "lost").count, ON_MARIADB ? 0 : 1
    Author.transaction(isolation: :serializable) { equal Author.count, 3 }
    threads = 4.times.map { |n| Thread.new { ActiveRecord::Base.connection_pool.with_connection { Tag.create!(name: "thread #{n}") } } }
    equal threads.map(&:value).map(&:persisted?), [true] * 4
  end,
  alter: lambda do
    migrations(First, Second)
    [Author, Book].each(&:reset_column_information)
    equal Author.first.country, "DE"
    equal Author.column_names[1, 2], %w[name country]
    equal connection.index_exists?(:authors, %i[country name]), true
    equal Book.columns_hash["title"].default, "none"
    connection.rename_table(:tags, :marks)
    connection.remove_column(:books, :isbn)
    connection.remove_index(:authors, column: %i[country name])
    connection.change_column(:books, :weight, :decimal, precision: 8, scale: 3)
    equal Book.find_by(title: "changed").reload.weight, BigDecimal("0.1")
  end,
  dump: lambda do
    # The file db/schema.rb; ActiveRecord knows no order in keys of MariaDB.
    next if ON_MARIADB

    text = StringIO.new
    ActiveRecord::SchemaDumper.dump(connection, text)
    dumped = text.string
    ["create_table \"authors\"", "t.index [\"price\", \"title\"], name: \"price_title\", length: { title: 20 }, order: { price: :desc }",
     "t.virtual \"gross\", type: :decimal, precision: 12, scale: 4", "t.check_constraint"].each do |part|
      raise "no #{part} in #{dumped}" unless dumped.include?(part)
    end
    %i[authors_tags marks books authors].each { |table| connection.drop_table(table) }
    # It makes the same tables again.
    ActiveRecord::Schema.verbose = false
    eval(dumped)
    again = StringIO.new
    ActiveRecord::SchemaDumper.dump(connection, again)
    equal again.string, dumped
  end,
}.freeze

failed = false
CHECKS.each do |name, check|
  check.call
  puts "#{name}\tok"
rescue StandardError, NotImplementedError => error
  failed = true
  line = error.backtrace.grep(/activerecord_checks/).reject { |one| one.include?("in `equal'") }.first.to_s[/:(\d+):/, 1]
  puts "#{name}\tFAIL\tline #{line}: #{error.class}: #{error.message}".gsub(/\s*\n\s*/, " ")[0, 700]
end
exit(failed ? 1 : 0)
