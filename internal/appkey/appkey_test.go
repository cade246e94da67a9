package appkey

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/platform/platformtest"
	"github.com/socle-dev/socle/internal/token"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestFindProjectKey checks that a key is one of its project alone, in every state in which the
// project answers, until it is revoked.
func TestFindProjectKey(t *testing.T) {
	t.Parallel()

	i := platformtest.New(t)
	project, other := i.Project(), i.Project()
	for _, kind := range []string{Publishable, Secret} {
		key, text, err := CreateProjectKey(t.Context(), i.DB, project, i.User, " "+kind+" ", kind)
		if err != nil || key.Name != kind || !token.IsAPIKey(text) {
			t.Fatalf("%s: got %+v, %q, %v", kind, key, text, err)
		}

		want := Identity{key.UUID, kind}
		for _, status := range []string{platform.Paused, platform.Deleted, platform.Active} {
			i.SetStatus(project, status)
			if got, err := FindProjectKey(t.Context(), i.DB, project, token.Hash(text)); got != want || err != nil {
				t.Errorf("%s key of a project that is %s: got %v, %v, want %v", kind, status, got, err, want)
			}
		}

		if _, err := FindProjectKey(t.Context(), i.DB, other, token.Hash(text)); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s key in another project: got %v, want NotFound", kind, err)
		}

		i.SetStatus(project, "deleting")
		if _, err := FindProjectKey(t.Context(), i.DB, project, token.Hash(text)); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s key of a project that is purged: got %v, want NotFound", kind, err)
		}

		i.SetStatus(project, platform.Active)
		if _, err := DeleteProjectKey(t.Context(), i.DB, other, key.UUID); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s key revoked by another project: got %v, want NotFound", kind, err)
		}
		if _, err := DeleteProjectKey(t.Context(), i.DB, project, key.UUID); err != nil {
			t.Error(err)
		}
		if _, err := FindProjectKey(t.Context(), i.DB, project, token.Hash(text)); !fault.Is(err, fault.NotFound) {
			t.Errorf("revoked %s key: got %v, want NotFound", kind, err)
		}
	}
}

func TestFindS3Key(t *testing.T) {
	t.Parallel()

	i := platformtest.New(t)
	project, other := i.Project(), i.Project()
	key, err := CreateS3Key(t.Context(), i.DB, project, i.User, "rclone")
	if err != nil {
		t.Fatal(err)
	}

	if err := FindS3Key(t.Context(), i.DB, project, key.UUID); err != nil {
		t.Error(err)
	}
	if err := FindS3Key(t.Context(), i.DB, other, key.UUID); !fault.Is(err, fault.NotFound) {
		t.Errorf("in another project: got %v, want NotFound", err)
	}
}

// TestFindFormProject checks that a key finds the forms of its own active project.
func TestFindFormProject(t *testing.T) {
	t.Parallel()

	i := platformtest.New(t)
	project, other := i.Project(), i.Project()
	form := uuid.New()
	i.Exec(`insert into platform.forms (uuid, project_uuid) values ($1, $2)`, form, project)

	find := func(owner uuid.UUID, form uuid.UUID) (uuid.UUID, error) {
		_, text, err := CreateProjectKey(t.Context(), i.DB, owner, i.User, uuid.NewString(), Publishable)
		if err != nil {
			t.Fatal(err)
		}

		return FindFormProject(t.Context(), i.DB, form, text)
	}

	if got, err := find(project, form); got != project || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, project)
	}
	if _, err := find(other, form); !fault.Is(err, fault.NotFound) {
		t.Errorf("by a key of another project: got %v, want NotFound", err)
	}
	if _, err := find(project, uuid.New()); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown form: got %v, want NotFound", err)
	}

	i.SetStatus(project, platform.Paused)
	if _, err := find(project, form); !fault.Is(err, fault.NotFound) {
		t.Errorf("form of a paused project: got %v, want NotFound", err)
	}
}

// TestLimits checks the number of keys of a project, and that keys of one project differ.
func TestLimits(t *testing.T) {
	t.Parallel()

	i := platformtest.New(t)
	project, other := i.Project(), i.Project()
	add := func(project uuid.UUID, id string) error {
		_, err := CreateJWTKey(t.Context(), i.DB, project, i.User,
			token.PublicKey{ID: id, Algorithm: "ES256", JSON: []byte(`{}`)})
		return err
	}

	for n := range maxJWTKeys - 1 {
		if err := add(project, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}

	if err := fault.Of(add(project, "0")); err == nil || err.Kind != fault.Conflict || err.Fields[0].Name != "kid" {
		t.Errorf("the same id: got %v, want Conflict on kid", err)
	}
	if err := add(project, "last"); err != nil {
		t.Error(err)
	}
	if err := fault.Of(add(project, "one more")); err == nil || err.Code != "quota_exceeded" {
		t.Errorf("beyond the limit: got %v, want quota_exceeded", err)
	}
	if err := add(other, "0"); err != nil {
		t.Errorf("in another project: %v", err)
	}

	if _, err := CreateS3Key(t.Context(), i.DB, project, i.User, " "); !fault.Is(err, fault.Unprocessable) {
		t.Errorf("blank name: got %v, want Unprocessable", err)
	}
}
