package form

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Statistics summarizes the complete responses to a form.
type Statistics struct {
	Total   int64             `json:"total" doc:"Complete responses."`
	Partial int64             `json:"partial" doc:"Partial responses."`
	Blocked int64             `json:"blocked" doc:"Submissions that were discarded because of the honeypot."`
	Days    []DayCount        `json:"days" doc:"Complete responses by UTC day: the latest 366 days with responses, newest first."`
	Fields  []FieldStatistics `json:"fields"`
}

// DayCount is a day's response count.
type DayCount struct {
	Day   string `json:"day" format:"date"`
	Count int64  `json:"count"`
}

// FieldStatistics summarizes the answers to a current field.
type FieldStatistics struct {
	FieldUUID uuid.UUID      `json:"fieldUuid" format:"uuid"`
	Label     string         `json:"label"`
	Type      string         `json:"type"`
	Answered  int64          `json:"answered" doc:"Responses with an answer."`
	Ratio     float64        `json:"ratio" doc:"Share of answered responses, 0 to 1."`
	Options   []OptionCount  `json:"options" doc:"For radio, select, multiselect, checkbox and rating: count of each option."`
	Min       jsontext.Value `json:"min" doc:"For number and rating; null without answers."`
	Max       jsontext.Value `json:"max" doc:"For number and rating; null without answers."`
	Average   jsontext.Value `json:"average" doc:"For number and rating, rounded to six decimal places."`
}

// OptionCount is an option's answer count.
type OptionCount struct {
	Option string `json:"option"`
	Count  int64  `json:"count"`
}

const (
	maxDays           = 366
	maxCountedOptions = 2000 // counted options per field
)

// countedTypes lists the field types for which statistics count each value.
var countedTypes = append([]string{"checkbox", "rating"}, choiceTypes...)

// GetStatistics returns a form's statistics in one snapshot. It fails with NotFound if the form
// does not exist.
func GetStatistics(ctx context.Context, p *projectdb.Project, form uuid.UUID) (Statistics, error) {
	var s Statistics
	err := readTx(ctx, p, func(tx pgx.Tx) error {
		f, err := getForm(ctx, tx, p, form)
		if err != nil {
			return err
		}

		args := pgx.StrictNamedArgs{"form": form}

		s = Statistics{Total: f.TotalResponses, Blocked: f.BlockedResponses, Fields: []FieldStatistics{}}
		if s.Partial, err = pg.Value[int64](ctx, tx,
			`select count(*) from forms.responses where form_uuid = @form and state = 'partial'`, args); err != nil {
			return err
		}

		if s.Days, err = pg.All[DayCount](ctx, tx, `
			select (submitted_at at time zone 'UTC')::date::text as day, count(*) as count
			from forms.responses where form_uuid = @form and state = 'complete'
			group by 1 order by 1 desc limit @max`, pgx.StrictNamedArgs{"form": form, "max": maxDays}); err != nil {
			return err
		}

		fields, err := listFields(ctx, tx, form)
		if err != nil {
			return err
		}

		return s.addFields(ctx, tx, form, fields)
	})

	return s, err
}

// fieldSummary aggregates the answers to a field.
type fieldSummary struct {
	Field    string
	Answered int64
	Min      *string
	Max      *string
	Average  *string
}

// chosenOption is an option's answer count in a field.
type chosenOption struct {
	Field  string
	Option string
	Count  int64
}

func (s *Statistics) addFields(ctx context.Context, tx pgx.Tx, form uuid.UUID, fields []Field) error {
	var keys []string
	for _, f := range fields {
		if slices.Contains(countedTypes, f.Type) {
			keys = append(keys, f.UUID.String())
		}
	}

	summaries, err := pg.All[fieldSummary](ctx, tx, `
		select a.key as field, count(*) as answered, min(n.n)::text as min, max(n.n)::text as max,
		       trim_scale(round(avg(n.n + 0.0000000), 6))::text as average
		from forms.responses r, jsonb_each(r.answers) a,
			lateral (select case when jsonb_typeof(a.value) = 'number' then (a.value #>> '{}')::numeric end) n (n)
		where r.form_uuid = @form and r.state = 'complete'
		group by a.key`, pgx.StrictNamedArgs{"form": form})
	if err != nil {
		return err
	}

	options, err := pg.All[chosenOption](ctx, tx, `
		select field, option, count from (
			select a.key as field, o.option, count(*) as count,
			       row_number() over (partition by a.key order by count(*) desc, o.option) as place
			from forms.responses r, jsonb_each(r.answers) a,
				lateral (
					select a.value #>> '{}' where jsonb_typeof(a.value) in ('string', 'number', 'boolean')
					union all
					select jsonb_array_elements_text(
						case when jsonb_typeof(a.value) = 'array' then a.value else '[]' end)
				) o (option)
			where r.form_uuid = @form and r.state = 'complete' and a.key = any(@counted::text[])
			group by a.key, o.option
		) ranked
		where place <= @max order by field, place`,
		pgx.StrictNamedArgs{"form": form, "counted": keys, "max": maxCountedOptions})
	if err != nil {
		return err
	}

	for _, f := range fields {
		s.Fields = append(s.Fields, f.statistics(s.Total, summaries, options))
	}

	return nil
}

func (f Field) statistics(total int64, summaries []fieldSummary, options []chosenOption) FieldStatistics {
	name := f.UUID.String()
	s := FieldStatistics{FieldUUID: f.UUID, Label: f.Label, Type: f.Type, Options: []OptionCount{},
		Min: jsonNumber(nil), Max: jsonNumber(nil), Average: jsonNumber(nil)}
	if i := slices.IndexFunc(summaries, func(s fieldSummary) bool { return s.Field == name }); i >= 0 {
		sum := summaries[i]
		s.Answered = sum.Answered
		s.Ratio = float64(s.Answered) / float64(max(total, 1))

		if slices.Contains(numberTypes, f.Type) {
			s.Min, s.Max, s.Average = jsonNumber(sum.Min), jsonNumber(sum.Max), jsonNumber(sum.Average)
		}
	}

	for _, o := range options {
		if o.Field == name {
			s.Options = append(s.Options, OptionCount{o.Option, o.Count})
		}
	}

	// Options without answers come last.
	var choices []string
	if f.Options != nil && json.Unmarshal([]byte(*f.Options), &choices) == nil {
		for _, option := range choices {
			if !slices.ContainsFunc(s.Options, func(o OptionCount) bool { return o.Option == option }) {
				s.Options = append(s.Options, OptionCount{option, 0})
			}
		}
	}

	return s
}

func jsonNumber(text *string) jsontext.Value {
	if text == nil {
		return jsontext.Value("null")
	}
	return jsontext.Value(*text)
}
