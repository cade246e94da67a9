package webhook

import (
	"testing"

	"github.com/socle-dev/socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
