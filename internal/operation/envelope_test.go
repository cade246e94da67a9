package operation

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestEncode checks UUIDs and times in each place that a response has them.
func TestEncode(t *testing.T) {
	t.Parallel()

	id := uuid.MustParse("00f1a2b3-0405-4607-8809-0a0b0c0d0eff")
	at := time.Date(2026, 1, 2, 3, 4, 5, 60_700, time.FixedZone("", 3600))

	got := string(encode(struct {
		ID     uuid.UUID            `json:"id"`
		Ref    *uuid.UUID           `json:"ref"`
		None   *uuid.UUID           `json:"none"`
		Null   uuid.NullUUID        `json:"null"`
		All    []uuid.UUID          `json:"all"`
		Of     map[uuid.UUID]int    `json:"of"`
		Any    any                  `json:"any"`
		At     time.Time            `json:"at"`
		Until  *time.Time           `json:"until"`
		Events map[string]time.Time `json:"events"`
	}{ID: id, Ref: &id, All: []uuid.UUID{id}, Of: map[uuid.UUID]int{id: 1}, Any: id, At: at, Until: &at,
		Events: map[string]time.Time{"a": {}}}))

	text, moment := `"00f1a2b3-0405-4607-8809-0a0b0c0d0eff"`, `"2026-01-02T02:04:05.000060Z"`
	want := `{"id":` + text + `,"ref":` + text + `,"none":null,"null":null,"all":[` + text + `],"of":{` + text +
		`:1},"any":` + text + `,"at":` + moment + `,"until":` + moment +
		`,"events":{"a":"0001-01-01T00:00:00.000000Z"}}` + "\n"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
