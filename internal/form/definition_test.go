package form

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// codes formats problems as "member code".
func codes(p problems) []string {
	all := []string{}
	for _, f := range p {
		all = append(all, f.Name+" "+f.Code)
	}

	return all
}

func TestApplyNew(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		in   FieldInput
		want []string // problems
	}{
		"least":                  {FieldInput{Label: "a", Type: "text"}, nil},
		"nothing":                {FieldInput{}, []string{"label required", "type required"}},
		"blank label":            {FieldInput{Label: " \u00a0", Type: "text"}, []string{"label invalid_format"}},
		"label of two lines":     {FieldInput{Label: "a\nb", Type: "text"}, []string{"label invalid_format"}},
		"label with NUL":         {FieldInput{Label: "a\x00", Type: "text"}, []string{"label invalid_format"}},
		"label of invalid UTF-8": {FieldInput{Label: "a\xff", Type: "text"}, []string{"label invalid_format"}},
		"longest label":          {FieldInput{Label: strings.Repeat("é", 100), Type: "text"}, nil},
		"label too long": {FieldInput{Label: strings.Repeat("é", 101), Type: "text"},
			[]string{"label too_long"}},
		"unknown type": {FieldInput{Label: "a", Type: "Text"}, []string{"type invalid_value"}},
		"description too long": {FieldInput{Label: "a", Type: "file", Description: optOf(strings.Repeat("x", 501))},
			[]string{"description too_long"}},
		"description with NUL": {FieldInput{Label: "a", Type: "file", Description: optOf("\x00")},
			[]string{"description invalid_format"}},
		"required null": {FieldInput{Label: "a", Type: "text", IsRequired: optNull[bool]()},
			[]string{"is_required invalid_value"}},
		"null everywhere": {FieldInput{Label: "a", Type: "checkbox", Options: optNull[string](),
			MinValue: optNull[int64](), Pattern: optOf("")},
			nil},
		"all at once": {FieldInput{Type: "number", Description: optOf("\x00"), MinValue: optOf(int64(2)),
			MaxValue: optOf(int64(1)), Pattern: optOf("a"), Options: optOf("a")},
			[]string{"options not_applicable", "pattern not_applicable", "label required", "description invalid_format",
				"min_value out_of_range"}},

		"values of a text": {FieldInput{Label: "a", Type: "text", MinValue: optOf(int64(1)),
			MaxValue: optOf(int64(1)), Options: optOf("a"),
			DateFormat: optOf("YYYY"), StartDate: optOf("x"), EndDate: optOf("x")},
			[]string{"options not_applicable", "min_value not_applicable", "max_value not_applicable",
				"date_format not_applicable", "start_date not_applicable", "end_date not_applicable"}},
		"values of a select": {FieldInput{Label: "a", Type: "select", Options: optOf("a"), Pattern: optOf("a"),
			MinLength: optOf(int64(1)), MaxLength: optOf(int64(1))},
			[]string{"pattern not_applicable", "min_length not_applicable", "max_length not_applicable"}},
		"default of a file": {FieldInput{Label: "a", Type: "file", DefaultValue: optOf("a")},
			[]string{"default_value not_applicable"}},

		"lengths": {
			FieldInput{Label: "a", Type: "phone", MinLength: optOf(int64(0)), MaxLength: optOf(int64(0))}, nil,
		},
		"negative lengths": {
			FieldInput{Label: "a", Type: "text", MinLength: optOf(int64(-1)), MaxLength: optOf(int64(-1))},
			[]string{"min_length invalid_value", "max_length invalid_value"},
		},
		"lengths crossed": {
			FieldInput{Label: "a", Type: "text", MinLength: optOf(int64(2)), MaxLength: optOf(int64(1))},
			[]string{"min_length out_of_range"},
		},
		"values crossed": {
			FieldInput{Label: "a", Type: "rating", MinValue: optOf(int64(-1)), MaxValue: optOf(int64(-2))},
			[]string{"min_value out_of_range"},
		},
		"dates crossed": {
			FieldInput{Label: "a", Type: "date", StartDate: optOf("2026-01-02"), EndDate: optOf("2026-01-01")},
			[]string{"start_date out_of_range"},
		},

		"pattern": {FieldInput{Label: "a", Type: "text", Pattern: optOf(`(a+)+$`)}, nil},
		"pattern open quote": {FieldInput{Label: "a", Type: "text", Pattern: optOf(`\Qa)`), DefaultValue: optOf("a)")},
			nil},
		"pattern half": {FieldInput{Label: "a", Type: "text", Pattern: optOf(`a)(b`)},
			[]string{"pattern invalid_format"}},
		"pattern look-ahead": {FieldInput{Label: "a", Type: "text", Pattern: optOf(`(?=a)`)},
			[]string{"pattern invalid_format"}},
		"pattern back": {FieldInput{Label: "a", Type: "text", Pattern: optOf(`(a)\1`)},
			[]string{"pattern invalid_format"}},
		"pattern bomb": {FieldInput{Label: "a", Type: "text", Pattern: optOf(`(?:a{1000}){1000}`)},
			[]string{"pattern invalid_format"}},
		"pattern large": {FieldInput{Label: "a", Type: "text", Pattern: optOf(strings.Repeat(`(?:a?){990}`, 5))},
			[]string{"pattern invalid_value"}},
		"pattern of long values": {FieldInput{Label: "a", Type: "text",
			Pattern: optOf(`(?:(?:.?){1000})*!`), MaxLength: optOf(int64(2000))},
			[]string{"pattern invalid_value"}},
		"pattern of short values": {
			FieldInput{Label: "a", Type: "text", Pattern: optOf(`(?:(?:.?){1000})*!`), MaxLength: optOf(int64(1900))},
			nil,
		},
		"pattern of large classes": {FieldInput{Label: "a", Type: "text", Pattern: optOf(`(?:[\pL\pS\pM]?){1000}`)},
			[]string{"pattern invalid_value"}},
		"pattern long": {FieldInput{Label: "a", Type: "text", Pattern: optOf(strings.Repeat("a", 1001))},
			[]string{"pattern too_long"}},
		"pattern deep": {
			FieldInput{Label: "a", Type: "text", Pattern: optOf(strings.Repeat("(", 500) + strings.Repeat(")", 500))},
			nil,
		},
		"pattern of NUL": {FieldInput{Label: "a", Type: "text", Pattern: optOf("\x00")},
			[]string{"pattern invalid_format"}},
		"pattern of bad UTF-8": {FieldInput{Label: "a", Type: "text", Pattern: optOf("\xff")},
			[]string{"pattern invalid_format"}},

		"no options": {FieldInput{Label: "a", Type: "radio"}, []string{"options required"}},
		"empty options": {FieldInput{Label: "a", Type: "select", Options: optOf("[]")},
			[]string{"options required"}},
		"options not an array": {FieldInput{Label: "a", Type: "select", Options: optOf(`["a"`)},
			[]string{"options invalid_format"}},
		"options of numbers": {FieldInput{Label: "a", Type: "select", Options: optOf(`[1]`)},
			[]string{"options invalid_format"}},
		"options with null": {FieldInput{Label: "a", Type: "select", Options: optOf(`["a",null]`)},
			[]string{"options invalid_value"}},
		"option empty": {FieldInput{Label: "a", Type: "select", Options: optOf(`a,,b`)},
			[]string{"options invalid_value"}},
		"option with NUL": {FieldInput{Label: "a", Type: "select", Options: optOf(`["\u0000"]`)},
			[]string{"options invalid_value"}},
		"option half surrogate": {FieldInput{Label: "a", Type: "select", Options: optOf(`["\ud800"]`)},
			[]string{"options invalid_format"}},
		"option too long": {FieldInput{Label: "a", Type: "select", Options: optOf(strings.Repeat("a", 256))},
			[]string{"options invalid_value"}},
		"option twice": {FieldInput{Label: "a", Type: "select", Options: optOf("a, b,a")},
			[]string{"options duplicate"}},
		"most options": {FieldInput{Label: "a", Type: "select", Options: optOf(numbers(1000))}, nil},
		"too many options": {FieldInput{Label: "a", Type: "select", Options: optOf(numbers(1001))},
			[]string{"options too_many"}},
		"default without option": {FieldInput{Label: "a", Type: "radio", DefaultValue: optOf("a")},
			[]string{"options required"}},

		"date_format unknown": {FieldInput{Label: "a", Type: "date", DateFormat: optOf("YYYY-DD-MM")},
			[]string{"date_format invalid_format"}},
		"date_format of a time": {FieldInput{Label: "a", Type: "date", DateFormat: optOf("HH:mm")},
			[]string{"date_format invalid_format"}},
		"date_format in Java": {FieldInput{Label: "a", Type: "datetime", DateFormat: optOf("dd.MM.yyyy HH:mm:ss")},
			nil},
		"dates wrong": {
			FieldInput{Label: "a", Type: "date", StartDate: optOf("2026-02-30"), EndDate: optOf("01.01.2026")},
			[]string{"start_date invalid_format", "end_date invalid_format"},
		},

		"default with NUL": {FieldInput{Label: "a", Type: "textarea", DefaultValue: optOf("a\x00")},
			[]string{"default_value invalid_format"}},
		"default too large": {FieldInput{Label: "a", Type: "textarea", DefaultValue: optOf(strings.Repeat("a", 1001))},
			[]string{"default_value too_long"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d, found := Definition{}.apply(test.in)
			if got := codes(found); !slices.Equal(got, test.want) {
				t.Errorf("%+v\n got %q\nwant %q", test.in, got, test.want)
			}

			if len(found) > 0 {
				return
			}

			again := d
			if found := again.check(); len(found) > 0 || !cmp.Equal(again, d) {
				t.Errorf("second check changed the definition: %q\n%s", codes(found), cmp.Diff(again, d))
			}
		})
	}
}

func numbers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = plural(i, "option")
	}

	return strings.Join(all, ",")
}

func TestApplyChange(t *testing.T) {
	t.Parallel()

	number := Definition{Label: "a", Type: "number", Description: new("why"), IsRequired: true, DefaultValue: new("5"),
		MinValue: new(int64(1)), MaxValue: new(int64(9))}

	choice := Definition{Label: "a", Type: "select", Options: new(`["x","y"]`), DefaultValue: new("x")}

	date := Definition{
		Label:        "a",
		Type:         "date",
		DateFormat:   new("DD.MM.YYYY"),
		StartDate:    new("2026-01-02"),
		DefaultValue: new("2026-03-04"),
	}
	for name, test := range map[string]struct {
		from     Definition
		in       FieldInput
		want     Definition
		problems []string
	}{
		"keeps what is absent": {from: number, in: FieldInput{Label: "b", Type: "number"},
			want: Definition{Label: "b", Type: "number", Description: new("why"),
				IsRequired: true, DefaultValue: new("5"),
				MinValue: new(int64(1)), MaxValue: new(int64(9))}},
		"clears null and empty members": {from: number, in: FieldInput{Label: "a", Type: "number",
			Description: optOf(""), DefaultValue: optNull[string](),
			MinValue: optNull[int64](), IsRequired: optOf(false)},
			want: Definition{Label: "a", Type: "number", MaxValue: new(int64(9))}},
		"judges the result": {from: number, in: FieldInput{Label: "a", Type: "number", MinValue: optOf(int64(6))},
			problems: []string{"default_value invalid_value"}},
		"judges a new limit against the old": {from: number,
			in: FieldInput{Label: "a", Type: "rating",
				MinValue: optOf(int64(10)), DefaultValue: optNull[string]()},
			problems: []string{"min_value out_of_range"}},
		"judges an old limit against the new": {from: number,
			in:       FieldInput{Label: "a", Type: "rating", MaxValue: optOf(int64(0))},
			problems: []string{"min_value out_of_range"}},
		"drops what the new type has no use for": {from: number, in: FieldInput{Label: "a", Type: "file"},
			want: Definition{Label: "a", Type: "file", Description: new("why"), IsRequired: true}},
		"keeps what the new type has a use for": {from: number, in: FieldInput{Label: "a", Type: "rating"},
			want: Definition{Label: "a", Type: "rating", Description: new("why"),
				IsRequired: true, DefaultValue: new("5"),
				MinValue: new(int64(1)), MaxValue: new(int64(9))}},
		"drops a value that the new type does not take": {from: date, in: FieldInput{Label: "a", Type: "time"},
			want: Definition{Label: "a", Type: "time"}},
		"refuses a value that the new type does not take": {from: date,
			in:       FieldInput{Label: "a", Type: "time", StartDate: optOf("2026-01-02")},
			problems: []string{"start_date invalid_format"}},
		"refuses what the new type has no use for": {from: number,
			in:       FieldInput{Label: "a", Type: "text", MinValue: optOf(int64(1))},
			problems: []string{"min_value not_applicable"}},
		"asks the new type's options": {from: number, in: FieldInput{Label: "a", Type: "select"},
			problems: []string{"options required"}},
		"asks for options that are cleared": {from: choice,
			in:       FieldInput{Label: "a", Type: "select", Options: optNull[string]()},
			problems: []string{"options required"}},
		"keeps options": {from: choice, in: FieldInput{Label: "a", Type: "multiselect"},
			want: Definition{Label: "a", Type: "multiselect", Options: new(`["x","y"]`), DefaultValue: new(`["x"]`)}},
		"judges the default by new options": {from: choice,
			in:       FieldInput{Label: "a", Type: "select", Options: optOf("y,z")},
			problems: []string{"default_value invalid_value"}},
		"keeps dates under another format": {from: date,
			in: FieldInput{Label: "a", Type: "date", DateFormat: optOf("MM/DD/YYYY"), EndDate: optOf("12/31/2026")},
			want: Definition{Label: "a", Type: "date", DateFormat: new("MM/DD/YYYY"), StartDate: new("2026-01-02"),
				EndDate: new("2026-12-31"), DefaultValue: new("2026-03-04")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, found := test.from.apply(test.in)
			if !slices.Equal(codes(found), test.problems) {
				t.Fatalf("%+v\n got %q\nwant %q", test.in, codes(found), test.problems)
			}

			if test.problems != nil {
				return
			}

			if diff := cmp.Diff(got, test.want); diff != "" {
				t.Errorf("got -, want +\n%s", diff)
			}
		})
	}
}

func TestDefaultValue(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		definition Definition
		takes      []string
		refuses    []string
	}{
		{Definition{Type: "text", MinLength: new(int64(2)), MaxLength: new(int64(3))}, []string{"éé", "abc"},
			[]string{"é", "abcd", "a\nb"}},
		{Definition{Type: "text", Pattern: new("[a-z]+|[0-9]")}, []string{"abc", "1"}, []string{"ab1", "12", "1a"}},
		{Definition{Type: "textarea", Pattern: new("(?s).+")}, []string{"a\nb"}, nil},
		{Definition{Type: "email"}, []string{"a@example.org"},
			[]string{"a", "a@", "A <a@example.org>", "a@example.org, b@example.org",
				strings.Repeat("a", 250) + "@b.org"}},
		{Definition{Type: "url"}, []string{"https://example.org/a?b#c", "http://[::1]:80"},
			[]string{"example.org", "ftp://example.org", "https://", "javascript:alert(1)", "https://a b/"}},
		{Definition{Type: "phone"}, []string{"+49 (30) 123-456", "112"}, []string{"+", "12", "one", "+49x"}},
		{Definition{Type: "number", MinValue: new(int64(-2)), MaxValue: new(int64(9007199254740993))},
			[]string{"-2", "1.5", "9007199254740993.0", "007"},
			[]string{"-2.0000000000000000001", "9007199254740994", "9007199254740993.1", "1e3", "1/2", "0x1", "", "NaN",
				" 1", strings.Repeat("9", 31)}},
		{Definition{Type: "rating", MinValue: new(int64(1)), MaxValue: new(int64(5))}, []string{"1", "5"},
			[]string{"0", "6", "2.5", "x"}},
		{Definition{Type: "checkbox"}, []string{"true", "false"}, []string{"TRUE", "1", "yes"}},
		{Definition{Type: "radio", Options: new(`["a","b, c"]`)}, []string{"a", "b, c"}, []string{"b", "A", "a "}},
		{Definition{Type: "multiselect", Options: new(`["a","b","c, d"]`)}, []string{`["b"]`, `["a","c, d"]`, `[]`},
			[]string{`["x"]`, "a,a", "c, d", `["a"`}},
		{Definition{Type: "date", StartDate: new("2026-01-01"), EndDate: new("2026-12-31")},
			[]string{"2026-01-01", "2026-12-31"},
			[]string{"2025-12-31", "2027-01-01", "2026-1-1", "2026-01-01T00:00", "20260101", "2026-02-29"}},
		{Definition{Type: "time", EndDate: new("17:00")}, []string{"09:30", "17:00:00", "16:59:59.999"},
			[]string{"9:30", "17:00:01", "24:00", "0930"}},
		{Definition{Type: "datetime", StartDate: new("2026-01-01T00:00:00+01:00")},
			[]string{"2025-12-31T23:00:00Z", "2026-01-01T00:00", "2026-01-01T12:00:00.5+02:00"},
			[]string{"2025-12-31T22:59:59Z", "2026-01-01", "2026-01-01 00:00", "2026-01-01T1:00:00Z"}},
	} {
		validate := func(value string) problems {
			d := test.definition
			d.Label, d.DefaultValue = "a", &value
			p := d.check()
			if len(p) == 0 && *d.DefaultValue != value {
				t.Errorf("%s: %q was changed to %q", d.Type, value, *d.DefaultValue)
			}

			return p
		}

		for _, value := range test.takes {
			if p := validate(value); len(p) > 0 {
				t.Errorf("%s, %q: got %v, want no problems", test.definition.Type, value, p)
			}
		}

		for _, value := range test.refuses {
			if got, want := codes(validate(value)), []string{"default_value invalid_value"}; !slices.Equal(got, want) {
				t.Errorf("%s, %q: got %q, want %q", test.definition.Type, value, got, want)
			}
		}
	}
}

// TestMessages checks that the failures of answers have the values of settings, not their names.
func TestMessages(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		d           Definition
		value, want string
	}{
		{Definition{Type: "date", StartDate: new("2026-01-01")}, "2025-12-31", "must not be before 2026-01-01"},
		{Definition{Type: "date", EndDate: new("2026-01-31"), DateFormat: new("DD.MM.YYYY")}, "2026-02-01",
			"must not be after 31.01.2026"},
		{Definition{Type: "time", EndDate: new("13:30"), DateFormat: new("hh:mm A")}, "15:00",
			"must not be after 01:30 PM"},
		{Definition{Type: "datetime", StartDate: new("2026-01-01T00:00+01:00"), DateFormat: new("YYYY-MM-DD HH:mm")},
			"2025-12-31 22:59", "must not be before 2025-12-31 23:00"},
		{Definition{Type: "date"}, "today", "must be a date such as 2026-12-31"},
		{Definition{Type: "date", DateFormat: new("DD.MM.YYYY")}, "1.2.2026",
			"must be a date in the format DD.MM.YYYY"},
		{Definition{Type: "datetime"}, "now", "must be a date and time such as 2026-12-31T13:30"},
		{Definition{Type: "time"}, "1", "must be a time such as 13:30"},
		{Definition{Type: "text", Pattern: new("[a-z]+")}, "A", "must have the expected format"},
		{Definition{Type: "multiselect", Options: new("a,b")}, `["c"]`, "must be options of the field"},
	} {
		tt.d.Label = "a"
		f := Field{Definition: tt.d}
		_, err := f.validate(tt.value, f.compileRules(new(problems)), newPatternBudget())
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s %q: got %v, want %s", tt.d.Type, tt.value, err, tt.want)
		}
	}
}

func TestStoredDates(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ kind, format, value, want string }{
		{"date", "DD.MM.YYYY", "31.12.2026", "2026-12-31"},
		{"date", "MM/DD/YYYY", "12/31/2026", "2026-12-31"},
		{"date", "YYYYMMDD", "20261231", "2026-12-31"},
		{"date", "dd-MM-yyyy", "31-12-2026", "2026-12-31"},
		{"date", "DD.MM.YYYY", "2026-12-31", "2026-12-31"},
		{"time", "hh:mm A", "01:30 PM", "13:30:00"},
		{"time", "HH:mm", "13:30", "13:30"},
		{"datetime", "DD.MM.YYYY HH:mm", "31.12.2026 13:30", "2026-12-31T13:30:00"},
		{"datetime", "YYYY-MM-DD HH:mm:ss", "2026-12-31 13:30:01", "2026-12-31T13:30:01"},
		{"datetime", "YYYY-MM-DD HH:mm:ss", "2026-12-31T13:30:01.5Z", "2026-12-31T13:30:01.5Z"},
	} {
		d := Definition{Label: "a", Type: test.kind, DateFormat: &test.format, StartDate: &test.value}
		if p := d.check(); len(p) > 0 || *d.StartDate != test.want {
			t.Errorf("%s %s, %q: got %q (%v), want %q", test.kind, test.format, test.value,
				*d.StartDate, p, test.want)
		}
	}

	for _, test := range []struct{ kind, format, value string }{
		{"date", "DD.MM.YYYY", "1.12.2026"}, {"date", "DD.MM.YYYY", "31.12.26"}, {"time", "HH:mm", "1:30"},
		{"time", "HH:mm:ss", "01:30:00.5,"},
		{"datetime", "DD.MM.YYYY HH:mm", "31.12.2026 1:30"},
	} {
		d := Definition{Label: "a", Type: test.kind, DateFormat: &test.format, EndDate: &test.value}
		if got, want := codes(d.check()), []string{"end_date invalid_format"}; !slices.Equal(got, want) {
			t.Errorf("%s %s: %q: got %q, want %q", test.kind, test.format, test.value, got, want)
		}
	}
}

// TestFormatsMatchISO checks that no date_format parses an ISO 8601 value as another time, since
// both are accepted.
func TestFormatsMatchISO(t *testing.T) {
	t.Parallel()

	for kind, value := range map[string]string{
		"date": "2003-02-01", "time": "02:03", "datetime": "2003-02-01T02:03:04",
	} {
		_, want, err := (&Definition{Type: kind}).parseDate(value)
		if err != nil {
			t.Fatal(err)
		}

		same := 0
		for format, layout := range layouts[kind] {
			got, err := time.Parse(layout, value)
			if err != nil {
				continue
			}

			same++

			if !got.Equal(want) {
				t.Errorf("%s: %s: got %v, want %v", format, value, got, want)
			}
		}

		if same == 0 {
			t.Errorf("no format of type %s accepts %s", kind, value)
		}
	}
}

func TestStoredOptions(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"a":                     `["a"]`,
		" red , green,blue":     `["red","green","blue"]`,
		` [ "a" , "b, c" ] `:    `["a","b, c"]`,
		`["<b>","é","\u00e8"]`:  `["<b>","é","è"]`,
		`["quote \" slash \\"]`: `["quote \" slash \\"]`,
		`a"b,{c}`:               `["a\"b","{c}"]`,
	} {
		d := Definition{Label: "a", Type: "select", Options: &in}
		if p := d.check(); len(p) > 0 || *d.Options != want {
			t.Errorf("%q: got %q (%v), want %q", in, *d.Options, p, want)
		}
	}
}
