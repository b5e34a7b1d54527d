// What applications of GORM do.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Author struct {
	gorm.Model
	Name    string     `gorm:"size:100;uniqueIndex;not null"`
	Country string     `gorm:"size:2;default:DE;index:by_country,priority:1"`
	Score   int        `gorm:"index:by_country,priority:2,sort:desc;check:score_sound,score >= 0"`
	Born    *time.Time `gorm:"type:date"`
	Books   []Book
	Profile *Profile
	Tags    []Tag `gorm:"many2many:author_tags"`
}

type Profile struct {
	ID       uint
	AuthorID uint   `gorm:"uniqueIndex"`
	Text     string `gorm:"type:longtext;comment:it's long"`
	Picture  []byte
}

type Book struct {
	ID        uint64
	AuthorID  uint `gorm:"index"`
	Author    *Author
	Title     string    `gorm:"size:200"`
	Price     float64   `gorm:"type:decimal(10,2)"`
	Published time.Time `gorm:"precision:6"`
	Sold      bool
	Kind      string `gorm:"type:enum('novel','atlas');default:novel"`
	Note      sql.NullString
	DeletedAt gorm.DeletedAt `gorm:"index"`
}

type Tag struct {
	Name string `gorm:"primaryKey;size:30"`
}

// The authors of a later version of the program.
type LaterAuthor struct {
	gorm.Model
	Name    string `gorm:"size:150;uniqueIndex;not null"`
	Country string `gorm:"size:2;default:DE"`
	Score   int64
	Born    *time.Time `gorm:"type:date"`
	Email   string     `gorm:"size:80;index;default:none"`
}

func (LaterAuthor) TableName() string { return "authors" }

var (
	db        *gorm.DB
	onMariadb = os.Getenv("CHECK_SERVER") == "mariadb"
	published = time.Date(2026, 2, 3, 4, 5, 6, 123_456_000, time.UTC)
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("%v, expected %v", found, expected))
	}
}

func refused(err error, number uint16) {
	var own *driver.MySQLError
	if !errors.As(err, &own) {
		panic(fmt.Sprintf("%v, expected error %d", err, number))
	}
	equal(own.Number, number)
}

func migrate() {
	must(db.AutoMigrate(&Author{}, &Profile{}, &Book{}, &Tag{}))
	// A second start finds all as it is.
	must(db.AutoMigrate(&Author{}, &Profile{}, &Book{}, &Tag{}))
	for _, name := range []string{"authors", "profiles", "books", "tags", "author_tags"} {
		equal(db.Migrator().HasTable(name), true)
	}
	equal(db.Migrator().HasIndex(&Author{}, "by_country"), true)
	equal(db.Migrator().HasConstraint(&Author{}, "score_sound"), true)
	types, err := db.Migrator().ColumnTypes(&Book{})
	must(err)
	var shown []string
	for _, column := range types {
		nullable, _ := column.Nullable()
		primary, _ := column.PrimaryKey()
		shown = append(shown, fmt.Sprintf("%s %s %v %v", column.Name(), column.DatabaseTypeName(), nullable, primary))
	}
	equal(shown[0], "id bigint false true")
	equal(shown[3], "price decimal true false")
	indexes, err := db.Migrator().GetIndexes(&Author{})
	must(err)
	equal(len(indexes), 4)
}

func rows() {
	born := time.Date(1970, 2, 28, 0, 0, 0, 0, time.UTC)
	anna := Author{
		Name: "Anna", Score: 5, Born: &born,
		Profile: &Profile{Text: strings.Repeat("ü", 70_000), Picture: []byte{0, 1, 255}},
		Tags:    []Tag{{"new"}, {"old"}},
		Books: []Book{
			{Title: "first", Price: 10.5, Published: published, Note: sql.NullString{String: "x", Valid: true}},
			{Title: "second", Price: 20.25, Published: published, Kind: "atlas"},
		},
	}
	must(db.Create(&anna).Error)
	equal(anna.ID, uint(1))
	equal(anna.Country, "DE")
	equal(anna.Books[1].ID, uint64(2))
	must(db.Create(&[]Author{{Name: "Bert", Country: "FR", Score: 3}, {Name: "Cara", Score: 7}}).Error)
	var found Author
	must(db.Preload("Books").Preload("Profile").Preload("Tags").First(&found, "name = ?", "Anna").Error)
	equal([]any{len(found.Books), len(found.Profile.Text), len(found.Tags), found.Born.Format("2006-01-02")},
		[]any{2, 140_000, 2, "1970-02-28"})
	equal([]any{found.Books[0].Published, found.Books[0].Price, found.Books[0].Note.String, found.Books[1].Kind},
		[]any{published, 10.5, "x", "atlas"})
	var many []Book
	for n := 0; n < 500; n++ {
		many = append(many, Book{AuthorID: 2, Title: fmt.Sprintf("volume %d", n), Price: float64(n), Published: published})
	}
	must(db.CreateInBatches(&many, 100).Error)
	equal(many[499].ID, uint64(502))
}

func queries() {
	var count int64
	must(db.Model(&Book{}).Where("price BETWEEN ? AND ?", 10, 30).Where("title LIKE ?", "volume%").Count(&count).Error)
	equal(count, int64(21))
	var names []string
	must(db.Model(&Author{}).Joins("JOIN books ON books.author_id = authors.id").Group("authors.id").
		Having("COUNT(books.id) > ?", 1).Order("name").Pluck("name", &names).Error)
	equal(names, []string{"Anna", "Bert"})
	var totals []struct {
		Country string
		Books   int
		Total   float64
	}
	must(db.Model(&Author{}).Select("country, COUNT(books.id) AS books, SUM(books.price) AS total").
		Joins("LEFT JOIN books ON books.author_id = authors.id").Group("country").Order("country").Scan(&totals).Error)
	equal(fmt.Sprint(totals), "[{DE 2 30.75} {FR 500 124750}]")
	var books []Book
	must(db.Joins("Author").Where("`Author`.`country` = ?", "FR").Order("price DESC").Limit(2).Offset(1).Find(&books).Error)
	equal([]any{books[0].Title, books[0].Author.Name}, []any{"volume 498", "Bert"})
	must(db.Where("price > (?)", db.Model(&Book{}).Select("AVG(price)")).Find(&books).Error)
	equal(len(books), 251)
	must(db.Where(db.Where("price = 1").Or("price = 2")).Where("kind <> ?", "atlas").Not("title", "first").Find(&books).Error)
	equal(len(books), 2)
	must(db.Table("(?) AS b", db.Model(&Book{}).Select("kind, price")).Select("kind").Group("kind").Order("kind").
		Pluck("kind", &names).Error)
	equal(len(names), 2)
	must(db.Raw("SELECT title FROM (SELECT title, ROW_NUMBER() OVER (PARTITION BY author_id ORDER BY price DESC) AS place" +
		" FROM books) b WHERE place = 1 ORDER BY title").Scan(&names).Error)
	equal(names, []string{"second", "volume 499"})
	must(db.Distinct("kind").Model(&Book{}).Where("author_id IN ?", []int{1, 2}).Order("kind DESC").Pluck("kind", &names).Error)
	equal(len(names), 2)
	batches := 0
	must(db.FindInBatches(&books, 200, func(*gorm.DB, int) error { batches++; return nil }).Error)
	equal(batches, 3)
	cursor, err := db.Model(&Book{}).Rows()
	must(err)
	count = 0
	for cursor.Next() {
		var book Book
		must(db.ScanRows(cursor, &book))
		count++
	}
	must(cursor.Close())
	equal(count, int64(502))
	equal(errors.Is(db.First(&Book{}, 100_000).Error, gorm.ErrRecordNotFound), true)
}

func changes() {
	equal(db.Model(&Author{}).Where("country = ?", "DE").Update("score", gorm.Expr("score + ?", 1)).RowsAffected, int64(2))
	var cara Author
	must(db.Where(Author{Name: "Cara"}).Assign(Author{Score: 9}).FirstOrCreate(&cara).Error)
	must(db.Model(&cara).Updates(map[string]any{"country": "IT", "born": nil}).Error)
	cara.Score = 10
	must(db.Save(&cara).Error)
	// An upsert.
	must(db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"score"})}).
		Create(&Author{Name: "Cara", Score: 11}).Error)
	must(db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Tag{"new"}).Error)
	must(db.First(&cara, cara.ID).Error)
	equal([]any{cara.Score, cara.Country}, []any{11, "IT"})
	// Deleted ones stay, with a time.
	equal(db.Where("price > ?", 250).Delete(&Book{}).RowsAffected, int64(249))
	var count int64
	must(db.Unscoped().Model(&Book{}).Count(&count).Error)
	equal(count, int64(502))
	equal(db.Unscoped().Where("deleted_at IS NOT NULL").Delete(&Book{}).RowsAffected, int64(249))
	must(db.Model(&cara).Association("Tags").Append(&Tag{"rare"}, &Tag{"new"}))
	equal(db.Model(&cara).Association("Tags").Count(), int64(2))
	must(db.Model(&cara).Association("Tags").Clear())
	must(db.Exec("UPDATE books JOIN authors ON authors.id = books.author_id SET books.sold = TRUE WHERE authors.name = ?", "Anna").Error)
	must(db.Model(&Book{}).Where("sold").Count(&count).Error)
	equal(count, int64(2))
}

func errorNumbers() {
	refused(db.Create(&Author{Name: "Anna"}).Error, 1062)
	refused(db.Exec("INSERT INTO authors (name) VALUES (NULL)").Error, 1048)
	refused(db.Find(&[]Author{}, "nothing = 1").Error, 1054)
	refused(db.Table("nothing").Find(&[]map[string]any{}).Error, 1146)
	number := uint16(3819)
	if onMariadb {
		number = 4025
	}
	refused(db.Create(&Author{Name: "X", Score: -1}).Error, number)
	translated, err := gorm.Open(mysql.New(mysql.Config{Conn: db.ConnPool}), &gorm.Config{TranslateError: true, Logger: logger.Discard})
	must(err)
	equal(errors.Is(translated.Create(&Author{Name: "Anna"}).Error, gorm.ErrDuplicatedKey), true)
}

func transactions() {
	must(db.Transaction(func(tx *gorm.DB) error {
		var anna Author
		must(tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&anna, 1).Error)
		must(tx.Exec("CREATE TEMPORARY TABLE chosen (id BIGINT PRIMARY KEY, title VARCHAR(200))").Error)
		must(tx.Exec("INSERT INTO chosen SELECT id, title FROM books WHERE price > 200").Error)
		must(tx.SavePoint("untouched").Error)
		must(tx.Exec("DELETE FROM chosen").Error)
		must(tx.RollbackTo("untouched").Error)
		var count int64
		must(tx.Table("chosen").Joins("JOIN books USING (id)").Count(&count).Error)
		equal(count, int64(50))
		return tx.Exec("DROP TEMPORARY TABLE chosen").Error
	}))
	failed := db.Transaction(func(tx *gorm.DB) error {
		must(tx.Create(&Tag{"lost"}).Error)
		return errors.New("enough")
	})
	equal(failed.Error(), "enough")
	var count int64
	must(db.Model(&Tag{}).Where("name = ?", "lost").Count(&count).Error)
	// Shared tables keep what was added, as those of MyISAM do.
	if onMariadb {
		equal(count, int64(0))
	} else {
		equal(count, int64(1))
	}
	prepared := db.Session(&gorm.Session{PrepareStmt: true})
	for n := 0; n < 50; n++ {
		var book Book
		must(prepared.Where("title = ?", fmt.Sprintf("volume %d", n)).Take(&book).Error)
		equal(book.Price, float64(n))
	}
}

func alter() {
	must(db.AutoMigrate(&LaterAuthor{}))
	migrator := db.Migrator()
	equal([]bool{migrator.HasColumn(&LaterAuthor{}, "email"), migrator.HasIndex(&LaterAuthor{}, "Email")}, []bool{true, true})
	var email string
	must(db.Table("authors").Where("id = 1").Pluck("email", &email).Error)
	equal(email, "none")
	must(migrator.RenameColumn(&LaterAuthor{}, "email", "address"))
	must(migrator.RenameIndex(&Author{}, "by_country", "by_land"))
	must(migrator.DropIndex(&Author{}, "by_land"))
	must(migrator.DropColumn(&LaterAuthor{}, "address"))
	must(migrator.AlterColumn(&Book{}, "Title"))
	must(migrator.RenameTable("tags", "marks"))
	tables, err := migrator.GetTables()
	must(err)
	equal(len(tables), 5)
	must(migrator.DropTable("marks", "author_tags", &Book{}, &Profile{}, &Author{}))
	equal(migrator.CurrentDatabase(), os.Getenv("CHECK_DATABASE"))
}

func check(name string, act func()) (ok bool) {
	defer func() {
		if reason := recover(); reason != nil {
			line := 0
			for depth := 1; depth < 20; depth++ {
				if _, file, at, _ := runtime.Caller(depth); strings.HasSuffix(file, "gorm/checks.go") && at > 90 {
					line = at
					break
				}
			}
			fmt.Printf("%s\tFAIL\tline %d: %.600s\n", name, line, strings.Join(strings.Fields(fmt.Sprint(reason)), " "))
		}
	}()
	act()
	fmt.Printf("%s\tok\n", name)
	return true
}

func main() {
	config := driver.NewConfig()
	config.User, config.Passwd = os.Getenv("CHECK_USER"), os.Getenv("CHECK_PASSWORD")
	config.Net, config.Addr = "tcp", os.Getenv("CHECK_HOST")+":"+os.Getenv("CHECK_PORT")
	config.DBName, config.ParseTime = os.Getenv("CHECK_DATABASE"), true
	config.AllowNativePasswords = true
	var err error
	db, err = gorm.Open(mysql.Open(config.FormatDSN()), &gorm.Config{Logger: logger.Discard})
	must(err)
	status := 0
	for _, each := range []struct {
		name string
		act  func()
	}{
		{"migrate", migrate}, {"rows", rows}, {"queries", queries}, {"changes", changes}, {"errors", errorNumbers},
		{"transactions", transactions}, {"alter", alter},
	} {
		if !check(each.name, each.act) {
			status = 1
		}
	}
	os.Exit(status)
}
