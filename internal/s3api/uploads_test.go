package s3api

import (
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/object"
)

func TestUploadsBefore(t *testing.T) {
	t.Parallel()

	one, two := uuid.New(), uuid.New()
	sorted := []object.Multipart{{FullFileName: "a"}, {FullFileName: "b", UUID: one}, {FullFileName: "b", UUID: two},
		{FullFileName: "c"}}
	for markers, want := range map[[2]string]int{
		{}: 0, {"a"}: 1, {"aa"}: 1, {"b"}: 3, {"b", one.String()}: 2, {"b", two.String()}: 3, {"b", "none"}: 1,
		{"c"}: 4, {"d"}: 4,
	} {
		if got := uploadsBefore(sorted, markers[0], markers[1]); got != want {
			t.Errorf("%q: got %d, want %d", markers, got, want)
		}
	}
}
