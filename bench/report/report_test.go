package report

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	t.Parallel()

	former := Report{Ratios: []Ratio{
		{Name: "same", Median: 0.8, Low: 0.7, High: 0.9},
		{Name: "noise", Median: 0.8, Low: 0.6, High: 0.9},
		{Name: "slower", Median: 0.8, Low: 0.78, High: 0.82},
		{Name: "longer", Median: 1.2, Low: 1.1, High: 1.3, LessIsBetter: true},
		{Name: "shorter", Median: 1.2, Low: 1.1, High: 1.3, LessIsBetter: true},
		{Name: "gone", Median: 1},
		{Name: "drifted", Median: 1.24, Low: 1.23, High: 1.25, LessIsBetter: true},
		{Name: "short of its bound", Median: 0.5, Low: 0.5, High: 0.5},
	}}
	now := Report{Ratios: []Ratio{
		{Name: "same", Median: 0.8, Low: 0.7, High: 0.9},
		{Name: "noise", Median: 0.6, Low: 0.5, High: 0.7},
		{Name: "slower", Median: 0.6, Low: 0.5, High: 0.7},
		{Name: "longer", Median: 1.5, Low: 1.4, High: 1.6, LessIsBetter: true},
		{Name: "shorter", Median: 0.5, Low: 0.4, High: 0.6, LessIsBetter: true},
		{Name: "new", Median: 0.1},
		{Name: "drifted", Median: 1.27, Low: 1.26, High: 1.28, LessIsBetter: true, Bound: 1.25},
		{Name: "short of its bound", Median: 0.48, Low: 0.47, High: 0.51, Bound: 0.5},
	}}

	want := []string{
		"slower: 0.60 (0.50–0.70), was 0.80 (0.78–0.82)", "longer: 1.50 (1.40–1.60), was 1.20 (1.10–1.30)",
		"gone: not measured", "drifted: 1.27 (1.26–1.28), must reach 1.25",
	}
	if got := now.Compare(former); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
