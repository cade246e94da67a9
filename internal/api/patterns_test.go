package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestPatternBudget checks that form definitions and responses are limited in the cost of
// their pattern matching.
func TestPatternBudget(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	const slow = `{"label": "a", "type": "text", "pattern": "(?:(?:.?){1000})*!"}`
	f := openSurvey(t, a, slow+strings.Repeat(","+slow, 9), "")
	answers := make([]string, 0, 10)
	fields := f.Get(f.path + "/fields").Want(200).Get("").([]any)
	for _, field := range fields {
		answers = append(answers, `"`+field.(map[string]any)["uuid"].(string)+`": "`+strings.Repeat("a", 100_000)+`"`)
	}

	refused := f.Post(f.path+"/responses", `{"answers": {`+strings.Join(answers, ",")+`}}`).Want(422)
	if got := strings.Count(string(refused.Body), `"message":"must be at most 1995`); got != len(fields) {
		t.Errorf("got %d of %d answers refused for their length: %.500s", got, len(fields), refused.Body)
	}

	f.Post(f.path+"/fields", `{"label": "a", "type": "text", "pattern": "(?:(?:.?){1000})*!", "max_length": 100000}`).
		Want(422).Field("pattern")
	f.Post(f.path+"/fields", `{"fields": [`+slow+strings.Repeat(","+slow, 20)+`]}`).Want(422).Field("fields.12.pattern")
	f.Post(f.path+"/fields", `{"fields": [{"label": "b", "type": "text"}]}`).Want(201)
}
