from keras_bert3.checkpoints.report import LoadReport, print_report


def test_reports_add_up():
    total = LoadReport(loaded=("a",), ignored=("x",)) + LoadReport(loaded=("b",))
    assert total == LoadReport(loaded=("a", "b"), ignored=("x",))


def test_printing_counts_everything_and_names_the_surprises(capsys):
    report = LoadReport(loaded=("a", "b"), unexpected=tuple(f"t{i}" for i in range(12)))
    print_report(report, limit=10)
    printed = capsys.readouterr().out
    assert "loaded: 2 " in printed and "unexpected: 12 " in printed
    assert "  t9\n" in printed and "  t10\n" not in printed and "... and 2 more" in printed
    assert "ignored" not in printed and "  a\n" not in printed
