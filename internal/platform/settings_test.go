package platform

import (
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// TestUpdateSetting checks the values that settings accept.
func TestUpdateSetting(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	for _, test := range []struct {
		name, value string
		kind        fault.Kind // of the failure; 0: success
	}{
		{"sign_up", "false", 0},
		{"sign_up", "0", fault.Unprocessable},
		{"request_days", "30", 0},
		{"request_days", "0", fault.Unprocessable},
		{"request_days", "3651", fault.Unprocessable},
		{"request_days", "1.0", fault.Unprocessable},
		{"request_days", "true", fault.Unprocessable},
		{"request_days", "null", fault.Unprocessable},
		{"unknown", "1", fault.NotFound},
	} {
		_, err := s.UpdateSetting(t.Context(), uuid.New(), test.name, test.value)
		if (test.kind == 0) != (err == nil) || (err != nil && !fault.Is(err, test.kind)) {
			t.Errorf("%s = %s: got %v, want an error of kind %v", test.name, test.value, err, test.kind)
		}
	}

	got, err := s.Settings(t.Context())
	if err != nil || got.SignUp || got.RequestDays != 30 {
		t.Errorf("got %+v, %v, want sign-up off and 30 days", got, err)
	}
}

// TestSettingDefaults checks that a reset, an unknown row and an invalid value leave the default,
// which the environment may have set.
func TestSettingDefaults(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	s.defaults.SignUp = false
	exec(t, s, `insert into platform.settings (name, value, updated_by) values
		('of_tomorrow', '{"a": 1}', gen_random_uuid()), ('request_days', '"many"', gen_random_uuid())`)

	if got, err := s.Settings(t.Context()); err != nil || got != s.defaults {
		t.Errorf("got %+v, %v, want %+v", got, err, s.defaults)
	}

	if _, err := s.UpdateSetting(t.Context(), uuid.New(), "sign_up", "true"); err != nil {
		t.Fatal(err)
	}

	shown, err := s.ResetSetting(t.Context(), "sign_up")
	if err != nil || shown.Value != false || shown.UpdatedAt != nil {
		t.Errorf("got %+v, %v, want the default false", shown, err)
	}

	all, err := s.ListSettings(t.Context())
	if err != nil || len(all) != len(declarations) {
		t.Errorf("got %d settings, %v, want %d", len(all), err, len(declarations))
	}
	for _, shown := range all {
		if shown.UpdatedAt != nil || shown.Value != shown.Default {
			t.Errorf("%s: got %v set at %v, want the default %v",
				shown.Name, shown.Value, shown.UpdatedAt, shown.Default)
		}
	}
}

// TestInStore checks that a store on another handle keeps the defaults.
func TestInStore(t *testing.T) {
	t.Parallel()

	s := newStore(t)
	s.defaults.RequestDays = 3
	err := s.InTx(t.Context(), func(tx *Store) error {
		if got, err := tx.Settings(t.Context()); err != nil || got.RequestDays != 3 {
			t.Errorf("got %d days, %v, want 3", got.RequestDays, err)
		}

		_, err := pg.Value[int](t.Context(), tx.DB().Querier(), `select 1`)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
