package object

import (
	"testing"

	"socle/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
