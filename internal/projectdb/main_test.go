package projectdb_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// slotsInUse returns the number of slots in use of the budget of connections.
func slotsInUse(r *projectdb.Registry) int { return int(r.Platform().Connections().Stats().InUse) }
