from django.urls import include, path

urlpatterns = [path("jobs/", include("django_jobkit.urls"))]
