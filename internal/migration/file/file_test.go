package file

import (
	"slices"
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	t.Parallel()

	for name, want := range map[string][]string{
		"20261123101500_create_books":      {"20261123101500", "create_books"},
		"20261399999999_no_time":           {"20261399999999", "no_time"},
		"00000000000000_zero":              {"00000000000000", "zero"},
		"20240105_day":                     {"20240105", "day"},
		"202401051230_minute":              {"202401051230", "minute"},
		"001_init":                         {"001", "init"},
		"0000_flat_hulk":                   {"0000", "flat_hulk"},
		"1_":                               {"1", ""},
		"20240105120000_":                  {"20240105120000", ""},
		"20240105120000_add.price v1.2":    {"20240105120000", "add.price v1.2"},
		"20240105120000_größe_und_été":     {"20240105120000", "größe_und_été"},
		"20240105120000__twice__":          {"20240105120000", "_twice__"},
		"20240105120000-0b3f-11ee":         {"20240105120000", "0b3f-11ee"},
		"20240105120000-":                  nil,
		"2024-01-05_dashes":                nil,
		"create_books":                     nil,
		"V1__flyway":                       nil,
		"20240105120000":                   nil,
		" 1_space":                         nil,
		"1_two\nlines":                     nil,
		"1_\xff":                           nil,
		"1_" + strings.Repeat("x", 251):    nil,
		strings.Repeat("1", 101) + "_long": nil,
	} {
		version, rest, ok := ParseName(name)
		if got := []string{version, rest}; ok != (want != nil) || (ok && !slices.Equal(got, want)) {
			t.Errorf("%q: got %q, %t, want %q", name, got, ok, want)
		}
	}
}

// TestCompare: versions have the order of the names of their files.
func TestCompare(t *testing.T) {
	t.Parallel()

	versions := []string{"001", "002", "10", "1", "20240104120000", "20240105", "20240106120000", "2", "20240105120000",
		"99999999999999", "00000000000060"}
	byVersion := slices.SortedFunc(slices.Values(versions), Compare)

	names := make([]string, len(versions))
	for i, v := range versions {
		names[i] = v + "_a.sql"
	}
	slices.Sort(names)

	for i, name := range names {
		if got := byVersion[i] + "_a.sql"; got != name {
			t.Errorf("%d: got %s, want %s", i, got, name)
		}
	}
}

func TestNext(t *testing.T) {
	t.Parallel()

	for version, want := range map[string]string{
		"001": "002", "0099": "0100", "20240105120000": "20240105120001", "9": "", "999": "",
	} {
		got, ok := Next(version)
		if got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %t, want %q", version, got, ok, want)
		}
		if ok && Compare(version, got) >= 0 {
			t.Errorf("%s: %s is not after it", version, got)
		}
	}
}

func TestUp(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"create table a ();":                                                   "create table a ();",
		"-- migrate:down\ndrop table a;":                                       "-- migrate:down\ndrop table a;", // no section up
		"-- migrate:up\na;\n\n-- migrate:down\nb;":                             "-- migrate:up\na;\n\n               \n  ",
		"--migrate:up\na;\n--migrate:down\n":                                   "--migrate:up\na;\n              \n",
		"-- é\n-- migrate:up\na;":                                              "    \n-- migrate:up\na;",
		"-- +goose Up\na;\n-- +goose Down\nb; -- é":                            "-- +goose Up\na;\n              \n       ",
		"-- migrate:down\nb;\n-- migrate:up\na;":                               "               \n  \n-- migrate:up\na;",
		"select '\n-- migrate:upper';":                                         "select '\n-- migrate:upper';",
		"-- +goose Up\n-- +goose StatementBegin\na;\n-- +goose StatementEnd\n": "-- +goose Up\n-- +goose StatementBegin\na;\n-- +goose StatementEnd\n",
	} {
		got, separate := Up(text)
		if got != want || separate {
			t.Errorf("%q: got %q, %t, want %q", text, got, separate, want)
		}
	}
}

func TestNoTransaction(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		"-- socle: no-transaction\na":                              true,
		"-- socle: no-transaction \r\na":                           true,
		"a;\n-- socle: no-transaction":                             false,
		"-- migrate:up transaction:false\na":                       true,
		"-- migrate:up\na -- transaction:false":                    false,
		"-- +goose NO TRANSACTION\n-- +goose Up\na":                true,
		"-- +goose NO TRANSACTION\na":                              false, // no file of goose
		"-- +goose Up\na\n-- +goose Down\nselect 'no transaction'": false,
	} {
		if _, got := Up(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}
