from filereport.analysis.groups import group
from filereport.analysis.table import parse_table


def grouping_of(text):
    found = group(parse_table(text))
    assert found is not None
    return found


def test_rows_with_one_day_each_are_measures_by_month():
    found = grouping_of("day,temp\n2025-01-01,2\n2025-01-02,4\n2025-02-01,9\n2025-03-01,\n")

    assert (found.by, found.kind, found.shown) == ("month of day", "time", "mean")
    assert found.labels == ["2025-01", "2025-02", "2025-03"]
    assert found.values == {"temp": [[2, 4], [9], []]}


def test_days_with_many_rows_are_sums_by_month():
    found = grouping_of("day,sold\n2025-01-01,2\n2025-01-01,4\n2025-01-02,1\n2025-02-01,9\n")

    assert found.shown == "sum"
    assert found.as_json()["groups"][0] == {
        "group": "2025-01",
        "rows": 3,
        "columns": {"sold": {"count": 3, "sum": 7, "mean": 2.333333333, "min": 1, "max": 4}},
    }


def test_more_than_sixty_months_are_put_together_by_year():
    rows = "".join(f"{year}-{month:02}-01,1\n" for year in range(2019, 2025) for month in range(1, 13))

    assert grouping_of(f"day,n\n{rows}").labels == ["2019", "2020", "2021", "2022", "2023", "2024"]


def test_without_dates_the_text_with_the_fewest_values_makes_the_groups():
    found = grouping_of("name,way,minutes\nA,bus,10\nB,car,20\nC,bus,30\n")

    assert (found.by, found.kind, found.shown) == ("way", "text", "mean")
    assert found.labels == ["bus", "car"]
    assert found.values == {"minutes": [[10, 30], [20]]}


def test_rows_without_a_group_are_left_out_of_it():
    assert grouping_of("way,minutes\nbus,10\n,20\ncar,30\n").rows == [1, 1]


def test_there_are_no_groups_without_numbers_or_without_anything_to_group_by():
    assert group(parse_table("day,way\n2025-01-01,bus\n")) is None
    assert group(parse_table("name,size\nx,1\n")) is None
