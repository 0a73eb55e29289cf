"""What the pages and the JSON are made of; `django_jobkit.views` has the views themselves."""
