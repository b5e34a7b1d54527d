"""What applications of Django do, from `migrate` to the lists of its administration."""

import datetime
import decimal
import io
import json
import os
import sys
import tempfile

import django
from django.conf import settings
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction
from django.db.models.functions import Coalesce, ExtractYear, TruncMonth

import shared
from shared import equal, on_mariadb, refused

MIGRATIONS = "shop_migrations"
UTC = datetime.timezone.utc

settings.configure(
    SECRET_KEY="checks",
    ALLOWED_HOSTS=["testserver"],
    ROOT_URLCONF="shop.urls",
    USE_TZ=True,
    TIME_ZONE="UTC",
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    MIGRATION_MODULES={"shop": MIGRATIONS},
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    STATIC_URL="/static/",
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "django.contrib.messages",
        "shop",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    CACHES={
        "default": {
            "BACKEND": "django.core.cache.backends.db.DatabaseCache",
            "LOCATION": "kept_answers",
        }
    },
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.mysql",
            "HOST": shared.HOST,
            "PORT": shared.PORT,
            "NAME": shared.DATABASE,
            "USER": shared.USER,
            "PASSWORD": shared.PASSWORD,
            "OPTIONS": {"charset": "utf8mb4"},
        }
    },
)


def said(*command, **options):
    """What a command of manage.py prints."""
    out = io.StringIO()
    call_command(*command, stdout=out, no_color=True, **options)
    return out.getvalue()


def migrate(folder):
    """A project's own migrations are made, and run with those of Django's applications."""
    os.mkdir(os.path.join(folder, MIGRATIONS))
    with open(os.path.join(folder, MIGRATIONS, "__init__.py"), "x", encoding="utf-8"):
        pass
    sys.path.insert(0, folder)
    equal("Create model Order" in said("makemigrations", "shop"), True, "makemigrations")
    said("migrate")
    equal("[ ]" in said("showmigrations"), False, "migrations that did not run")
    equal("No changes" in said("makemigrations", "shop"), True, "changes after migrate")
    equal(said("check", databases=["default"]), "System check identified no issues (0 silenced).\n")
    said("createcachetable")
    from django.contrib.contenttypes.models import ContentType

    equal(ContentType.objects.filter(app_label="shop").count(), 4)


def moment(month, day):
    return datetime.datetime(2026, month, day, 12, 30, 15, 123456, UTC)


def create(_):
    """Rows with a value in each kind of field are read back as they were."""
    from shop.models import Customer, Line, Order, Product

    anna = Customer.objects.create(name="Änna", joined=datetime.date(2025, 2, 28))
    bob, made = Customer.objects.get_or_create(
        name="Bob", defaults={"email": "bob@example.com", "joined": datetime.date(2026, 1, 1)}
    )
    equal((made, Customer.objects.get_or_create(name="Bob")[1]), (True, False))
    details = {"color": "red", "sizes": [1, 2.5, None], "maker": {"name": 'Öl "& Co"'}}
    pen = Product.objects.create(
        sku="pen",
        price=decimal.Decimal("12.50"),
        details=details,
        weight=0.25,
        picture=b"\0\xff'\\",
    )
    cup = Product.objects.create(sku="cup", price=decimal.Decimal("99999999.99"))
    # Fixtures keep milliseconds; without any, they write the moment in another way.
    Product.objects.update(added=moment(1, 1))
    pen.refresh_from_db()
    equal(
        (pen.price, pen.details, pen.weight, bytes(pen.picture)),
        (decimal.Decimal("12.50"), details, 0.25, b"\0\xff'\\"),
    )
    first = Order.objects.create(
        customer=anna,
        number=1,
        placed=moment(1, 31),
        delivery=datetime.timedelta(days=3, microseconds=5),
    )
    reference = first.reference
    first.refresh_from_db()
    equal(
        (first.placed, first.delivery, first.reference),
        (moment(1, 31), datetime.timedelta(days=3, microseconds=5), reference),
    )
    second = Order.objects.create(customer=anna, number=2, placed=moment(2, 1), note="urgent 100%")
    third = Order.objects.create(customer=bob, number=1, placed=moment(2, 2))
    lines = [
        Line(order=order, product=product, quantity=quantity)
        for order, product, quantity in (
            (first, pen, 2),
            (first, cup, 1),
            (second, pen, 10),
            (third, cup, 3),
        )
    ]
    Line.objects.bulk_create(lines)
    equal(sorted(product.sku for product in first.products.all()), ["cup", "pen"])
    equal(cup.line_set.count(), 2)


def annotate(_):
    """Counts and sums through relations, with HAVING, subqueries and truncated dates."""
    from shop.models import Customer, Line, Order

    found = (
        Customer.objects.annotate(n=models.Count("orders")).order_by("-n").values_list("name", "n")
    )
    equal(list(found), [("Änna", 2), ("Bob", 1)])
    found = Order.objects.annotate(
        n=models.Count("lines"),
        total=models.Sum(models.F("lines__quantity") * models.F("lines__product__price")),
    ).filter(n__gt=1)
    equal(
        [(order.number, order.n, order.total) for order in found],
        [(1, 2, decimal.Decimal("100000024.99"))],
    )
    found = (
        Order.objects.annotate(month=TruncMonth("placed"))
        .order_by("month")
        .values("month")
        .annotate(n=models.Count("id"))
    )
    equal([(row["month"].month, row["n"]) for row in found], [(1, 1), (2, 2)])
    latest = Order.objects.filter(customer=models.OuterRef("pk")).order_by("-placed")
    found = Customer.objects.annotate(latest=models.Subquery(latest.values("number")[:1])).order_by(
        "name"
    )
    equal(sorted((row.name, row.latest) for row in found), [("Bob", 1), ("Änna", 2)])
    found = Customer.objects.filter(
        models.Exists(Order.objects.filter(customer=models.OuterRef("pk"), number=2))
    )
    equal([row.name for row in found], ["Änna"])
    equal(
        Line.objects.aggregate(
            total=models.Sum("quantity"), most=models.Max("quantity"), mean=models.Avg("quantity")
        ),
        {"total": 16, "most": 10, "mean": 4},
    )
    equal(Order.objects.aggregate(n=models.Count("customer", distinct=True))["n"], 2)
    kind = models.Case(
        models.When(quantity__gte=3, then=models.Value("many")), default=models.Value("few")
    )
    found = (
        Line.objects.annotate(kind=kind)
        .values("kind")
        .annotate(n=models.Count("pk"))
        .order_by("kind")
    )
    equal([(row["kind"], row["n"]) for row in found], [("few", 2), ("many", 2)])


def read(_):
    """Lookups, relations in one query and in two, distinct rows, pages, unions, EXPLAIN."""
    from shop.models import Customer, Line, Order, Product

    found = (
        Order.objects.select_related("customer").prefetch_related("lines__product").order_by("id")
    )
    equal(
        [(order.customer.name, len(order.lines.all())) for order in found],
        [("Änna", 2), ("Änna", 1), ("Bob", 1)],
    )
    equal(Order.objects.filter(note__contains="100%").count(), 1)
    equal(Customer.objects.filter(name__startswith="Än", email__isnull=True).exists(), True)
    equal(Customer.objects.filter(name__regex="^B.b$").count(), 1)
    equal(Order.objects.filter(placed__date=datetime.date(2026, 2, 1)).get().number, 2)
    equal(
        Order.objects.filter(
            placed__year=2026, placed__month=2, placed__week_day__in=[1, 2]
        ).count(),
        2,
    )
    equal(Order.objects.annotate(year=ExtractYear("placed")).filter(year=2026).count(), 3)
    equal(Order.objects.filter(delivery__gt=datetime.timedelta(days=1)).count(), 1)
    equal(
        [str(day) for day in Order.objects.dates("placed", "month")], ["2026-01-01", "2026-02-01"]
    )
    equal(
        sorted(
            Customer.objects.filter(orders__lines__product__sku="cup")
            .distinct()
            .values_list("name", flat=True)
        ),
        ["Bob", "Änna"],
    )
    equal(list(Order.objects.order_by("-placed").values_list("number", flat=True)[1:3]), [2, 1])
    equal(len(Customer.objects.filter(name="Bob").union(Customer.objects.filter(active=True))), 2)
    equal(sorted(Product.objects.in_bulk(["pen", "cup"])), ["cup", "pen"])
    known = Customer.objects.annotate(mail=Coalesce("email", models.Value("none"))).order_by("mail")
    equal([row.mail for row in known], ["bob@example.com", "none"])
    ranked = Line.objects.annotate(
        place=models.Window(models.functions.Rank(), order_by=models.F("quantity").desc())
    )
    equal(sorted(row.place for row in ranked), [1, 2, 3, 4])
    equal(bool(Order.objects.filter(number=1).explain()), True)


def json_lookups(_):
    """Conditions on what stands inside of a JSON document."""
    if not on_mariadb():
        return "there are no functions for parts of JSON"
    from shop.models import Product

    equal(Product.objects.filter(details__color="red").count(), 1)
    equal(Product.objects.filter(details__maker__name__startswith="Öl").count(), 1)
    equal(Product.objects.filter(details__sizes__1=2.5).count(), 1)
    equal(Product.objects.filter(details__has_key="color").count(), 1)
    equal(Product.objects.filter(details__contains={"color": "red"}).count(), 1)
    equal(
        list(
            Product.objects.filter(details__color__isnull=False).values_list(
                "details__color", flat=True
            )
        ),
        ["red"],
    )


def change(_):
    """Rows are updated and deleted by queries, one by one and many at once."""
    from shop.models import Customer, Line, Order, Product

    changed, made = Customer.objects.update_or_create(name="Bob", defaults={"active": False})
    equal((changed.active, made), (False, False))
    changed, made = Customer.objects.update_or_create(
        name="Cleo", defaults={"joined": datetime.date(2026, 3, 1)}
    )
    equal(made, True)
    orders = [Order(customer=changed, number=number, placed=moment(3, 1)) for number in range(500)]
    Order.objects.bulk_create(orders, batch_size=200)
    equal(Order.objects.filter(customer=changed).count(), 500)
    mine = list(Order.objects.filter(customer=changed, number__lt=10).order_by("number"))
    for order in mine:
        order.note = f"note {order.number}"
    equal(Order.objects.bulk_update(mine, ["note"]), 10)
    equal(Order.objects.get(customer=changed, number=7).note, "note 7")
    Customer.objects.bulk_create(
        [Customer(name="Cleo", joined=datetime.date(2026, 4, 1), email="cleo@example.com")],
        update_conflicts=True,
        update_fields=["email"],
    )
    changed.refresh_from_db()
    equal((changed.email, changed.joined), ("cleo@example.com", datetime.date(2026, 3, 1)))
    Customer.objects.bulk_create(
        [Customer(name="Bob", joined=datetime.date(2026, 4, 1))], ignore_conflicts=True
    )
    equal(Customer.objects.count(), 3)
    equal(Line.objects.filter(product__sku="pen").update(quantity=models.F("quantity") + 1), 2)
    equal(Order.objects.filter(customer__name="Cleo").update(number=models.F("number") + 1000), 500)
    equal(
        Customer.objects.filter(pk=changed.pk).delete()[1], {"shop.Order": 500, "shop.Customer": 1}
    )
    refused(models.ProtectedError, lambda: Product.objects.get(sku="pen").delete())


def constraints(_):
    """What the server refuses is an IntegrityError, and the connection goes on."""
    from shop.models import Customer, Line, Order, Product

    order = Order.objects.get(customer__name="Bob")
    pen = Product.objects.get(sku="pen")
    for act in (
        lambda: Customer.objects.create(name="Bob", joined=datetime.date(2026, 1, 1)),
        lambda: Order.objects.create(customer=order.customer, number=1, placed=moment(1, 1)),
        lambda: Line.objects.create(order=order, product=pen, quantity=0),
        lambda: Customer.objects.create(name="nobody"),
    ):
        refused(IntegrityError, transaction.atomic(act))
    equal(Customer.objects.count(), 2)


def atomic(_):
    """Blocks that fail take their rows back, those inside of others alone."""
    from shop.models import Customer

    def add(name):
        Customer.objects.create(name=name, joined=datetime.date(2026, 1, 1))

    with transaction.atomic():
        add("kept")
        try:
            with transaction.atomic():
                add("lost")
                raise KeyError
        except KeyError:
            pass
    done = []
    try:
        with transaction.atomic():
            add("lost too")
            transaction.on_commit(lambda: done.append(1))
            raise KeyError
    except KeyError:
        pass
    names = sorted(Customer.objects.values_list("name", flat=True))
    Customer.objects.exclude(name__in=["Änna", "Bob"]).delete()
    # Shared tables keep their rows, as those of MyISAM do.
    kept = ["kept"] if on_mariadb() else ["kept", "lost", "lost too"]
    equal((names, done), (["Bob", *kept, "Änna"], []))
    with transaction.atomic():
        equal(Customer.objects.select_for_update().get(name="Bob").name, "Bob")


def temporary(_):
    """A model of a temporary table: its rows are rolled back, and nobody else sees it."""

    class Heap(models.Model):
        name = models.CharField(max_length=20, db_index=True)
        n = models.IntegerField(default=0)

        class Meta:
            app_label, managed, db_table = "none", False, "heap"

    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMPORARY TABLE heap (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), n INT, KEY (name))"
        )
    Heap.objects.bulk_create([Heap(name=f"name {n % 3}", n=n) for n in range(300)])
    with transaction.atomic():
        Heap.objects.filter(n__lt=150).delete()
        transaction.set_rollback(True)
    with transaction.atomic():
        Heap.objects.create(name="name 0", n=1000)
        saved = transaction.savepoint()
        Heap.objects.all().delete()
        transaction.savepoint_rollback(saved)
    found = (
        Heap.objects.values("name")
        .annotate(count=models.Count("id"), most=models.Max("n"))
        .order_by("name")
    )
    equal(
        [(row["name"], row["count"], row["most"]) for row in found],
        [("name 0", 101, 1000), ("name 1", 100, 298), ("name 2", 100, 299)],
    )


def schema(_):
    """What migrations do to tables that have rows."""
    from shop.models import Customer

    def field(kind, name):
        kind.set_attributes_from_name(name)
        kind.model = Customer
        return kind

    table = Customer._meta.db_table
    short = field(models.CharField(max_length=10, default="none"), "phone")
    long = field(models.CharField(max_length=50, null=True, db_index=True), "phone")
    renamed = field(models.CharField(max_length=50, null=True, db_index=True), "mobile")
    index = models.Index(fields=["joined", "active"], name="customer_joined")
    check = models.CheckConstraint(
        condition=models.Q(joined__gt="2000-01-01"), name="customer_since"
    )
    with connection.schema_editor() as editor:
        editor.add_field(Customer, short)
        editor.alter_field(Customer, short, long)
        editor.alter_field(Customer, long, renamed)
        editor.add_index(Customer, index)
        editor.add_constraint(Customer, check)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*), MIN(mobile) FROM {table}")
        equal(cursor.fetchone(), (2, "none"))
        found = connection.introspection.get_constraints(cursor, table)
        equal(found["customer_joined"]["columns"], ["joined", "active"])
        equal(found["customer_since"]["check"], True)
        equal([each["primary_key"] for each in found.values() if each["columns"] == ["id"]], [True])
        equal([each["unique"] for each in found.values() if each["columns"] == ["name"]], [True])
        equal([each["index"] for each in found.values() if each["columns"] == ["mobile"]], [True])
    with connection.schema_editor() as editor:
        editor.remove_constraint(Customer, check)
        editor.remove_index(Customer, index)
        editor.remove_field(Customer, renamed)
        editor.alter_db_table(Customer, table, "shop_person")
        editor.alter_db_table(Customer, "shop_person", table)
    with connection.cursor() as cursor:
        described = connection.introspection.get_table_description(cursor, table)
    equal([each.name for each in described], ["id", "name", "email", "joined", "active"])


def inspectdb(_):
    """Models are told from tables."""
    text = said("inspectdb")
    for wanted in (
        "class ShopCustomer(models.Model):",
        "id = models.BigAutoField(primary_key=True)",
        "name = models.CharField(unique=True, max_length=100)",
        "email = models.CharField(max_length=254, blank=True, null=True)",
        "joined = models.DateField()",
        "sku = models.CharField(primary_key=True, max_length=20)",
        "price = models.DecimalField(max_digits=10, decimal_places=2)",
        "details = models.JSONField()",
        "weight = models.FloatField(blank=True, null=True)",
        "picture = models.TextField(blank=True, null=True)",
        "added = models.DateTimeField()",
        "number = models.PositiveIntegerField()",
        "note = models.TextField()",
        "quantity = models.PositiveSmallIntegerField()",
        "db_table = 'shop_order'",
        "unique_together = (('customer', 'number'),)",
    ):
        # A relation is a number where foreign keys are not kept.
        if wanted not in text and wanted.replace("customer'", "customer_id'") not in text:
            raise AssertionError(
                f"{wanted} is not in {' '.join(text.split('class ShopCustomer')[-1].split())}"
            )


def dumpdata(folder):
    """Rows go to a file, the tables are emptied, and the rows come back."""
    from shop.models import Order

    before, after = (os.path.join(folder, name) for name in ("before.json", "after.json"))
    said("dumpdata", "shop", "auth", output=before)
    said("flush", interactive=False)
    equal(Order.objects.count(), 0)
    said("loaddata", before)
    said("dumpdata", "shop", "auth", output=after)
    with open(before, encoding="utf-8") as first, open(after, encoding="utf-8") as second:
        for found, expected in zip(json.load(second), json.load(first), strict=True):
            equal(found, expected)
    equal(Order.objects.count(), 3)


def admin(_):
    """Login, lists with their filters and searches, a form that adds, a page that deletes."""
    from django.contrib.auth.models import User
    from django.test import Client
    from shop.models import Customer

    User.objects.create_superuser("root", "root@example.com", "secret")
    client = Client()
    equal(client.get("/admin/").status_code, 302)
    answer = client.post("/admin/login/?next=/admin/", {"username": "root", "password": "secret"})
    equal(answer.status_code, 302)
    equal("Site administration" in client.get("/admin/").content.decode(), True)
    listed = client.get("/admin/shop/order/").content.decode()
    equal(("3 orders" in listed, "Änna" in listed, "By customer" in listed), (True, True, True))
    for query, count in (
        ("q=urgent", 1),
        ("placed__year=2026&placed__month=2", 2),
        ("o=-2.1", 3),
        ("_facets=True", 3),
    ):
        equal(
            f"{count} order" in client.get(f"/admin/shop/order/?{query}").content.decode(),
            True,
            query,
        )
    answer = client.post("/admin/shop/customer/add/", {"name": "Dora", "joined": "2026-05-05"})
    equal(answer.status_code, 302)
    dora = Customer.objects.get(name="Dora")
    equal("Dora" in client.get("/admin/shop/customer/").content.decode(), True)
    answer = client.post(f"/admin/shop/customer/{dora.pk}/delete/", {"post": "yes"})
    equal((answer.status_code, Customer.objects.filter(name="Dora").count()), (302, 0))
    equal("Added" in client.get("/admin/").content.decode(), True)


def cache(_):
    """Django's cache in a table."""
    from django.core.cache import cache as kept

    kept.set("answer", {"n": 42}, 60)
    kept.set("answer", {"n": 43}, 60)
    equal(
        (
            kept.get("answer"),
            kept.add("answer", 1),
            kept.incr("count", 1) if kept.add("count", 1) else 0,
        ),
        ({"n": 43}, False, 2),
    )
    kept.clear()
    equal(kept.get("answer"), None)


CHECKS = [
    migrate,
    create,
    annotate,
    read,
    json_lookups,
    change,
    constraints,
    atomic,
    temporary,
    schema,
    inspectdb,
    dumpdata,
    admin,
    cache,
]

if __name__ == "__main__":
    django.setup()
    with tempfile.TemporaryDirectory() as place:
        shared.run(CHECKS, place)
