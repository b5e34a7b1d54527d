"""Models with the kinds of fields, keys and constraints that applications of Django declare."""

import uuid

from django.db import models


class Customer(models.Model):
    name = models.CharField(max_length=100, unique=True)
    email = models.EmailField(null=True, blank=True)
    joined = models.DateField()
    active = models.BooleanField(default=True)

    def __str__(self):
        return self.name


class Product(models.Model):
    sku = models.SlugField(primary_key=True, max_length=20)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    details = models.JSONField(default=dict)
    weight = models.FloatField(null=True)
    picture = models.BinaryField(null=True)
    added = models.DateTimeField(auto_now_add=True)


class Order(models.Model):
    customer = models.ForeignKey(Customer, models.CASCADE, related_name="orders")
    products = models.ManyToManyField(Product, through="Line")
    number = models.PositiveIntegerField()
    reference = models.UUIDField(default=uuid.uuid4)
    placed = models.DateTimeField()
    delivery = models.DurationField(null=True, blank=True)
    note = models.TextField(blank=True)

    class Meta:
        unique_together = [("customer", "number")]
        indexes = [models.Index(fields=["placed", "-number"], name="order_placed")]
        ordering = ["placed", "number"]


class Line(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    product = models.ForeignKey(Product, models.PROTECT)
    quantity = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(quantity__gt=0), name="line_quantity"),
            models.UniqueConstraint(fields=["order", "product"], name="line_product"),
        ]
