"""The lists of the administration, with all that makes queries of their own."""

from django.contrib import admin

from shop import models


@admin.register(models.Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ["number", "customer", "placed"]
    list_filter = ["customer", "placed"]
    search_fields = ["note", "customer__name"]
    date_hierarchy = "placed"


admin.site.register(models.Customer)
