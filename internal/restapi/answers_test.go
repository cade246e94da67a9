package restapi

import (
	"testing"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestRemoveAnswers: the sweep removes answers after a day.
func TestRemoveAnswers(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	if _, err := p.Trusted().Exec(t.Context(), `
		insert into socle.kept_answers (key, fingerprint, status, headers, body, kept_at)
		select sha256(int4send(n)), '', 201, '{}', '', now() - case when n > 1 then interval '25 hours' else '23 hours' end
		from generate_series(1, 1500) n`); err != nil {
		t.Fatal(err)
	}

	if err := Subject().Sweep(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	n, err := pg.Value[int64](t.Context(), p.Trusted(), `select count(*) from socle.kept_answers`)
	if err != nil || n != 1 {
		t.Errorf("got %d answers, %v, want the one of a day", n, err)
	}
}
