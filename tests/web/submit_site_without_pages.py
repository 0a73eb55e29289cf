from django.urls import path

from tests.web.submit_site import SummaryView

urlpatterns = [path("new/", SummaryView.as_view())]
