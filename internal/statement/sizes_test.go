package statement

import "testing"

func TestGrowth(t *testing.T) {
	t.Parallel()

	before := map[string]relationSize{"1": {"10", 100}, "2": {"20", 100}}
	for name, test := range map[string]struct {
		after map[string]relationSize
		want  int64
	}{
		"nothing":             {before, 0},
		"rows":                {map[string]relationSize{"1": {"10", 150}, "2": {"20", 100}}, 50},
		"rows beside vacuum":  {map[string]relationSize{"1": {"10", 150}, "2": {"20", 0}}, 50},
		"a new table":         {map[string]relationSize{"1": {"10", 100}, "2": {"20", 100}, "3": {"30", 8}}, 8},
		"rows for a table":    {map[string]relationSize{"1": {"10", 150}}, -50},
		"rows for a truncate": {map[string]relationSize{"1": {"10", 150}, "2": {"21", 0}}, -50},
		"a larger rewrite":    {map[string]relationSize{"1": {"11", 130}, "2": {"20", 100}}, 30},
	} {
		if got := growth(before, test.after); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}
