package integration_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
)

// TestRemoveOrphans removes orphaned blobs from both kinds of storage.
func TestRemoveOrphans(t *testing.T) {
	t.Parallel()

	t.Run("folder", func(t *testing.T) {
		t.Parallel()

		a := apitest.New(t)
		removeOrphans(t, a, a.Config.StorageDir())
	})

	t.Run("S3", func(t *testing.T) {
		t.Parallel()

		service := blobtest.New(t)
		removeOrphans(t, apitest.New(t, func(c *config.Config) { service.Configure(c) }),
			filepath.Join(service.Dir, "some/prefix"))
	})
}

func removeOrphans(t *testing.T, a *apitest.API, folder string) {
	t.Helper()

	blobs, err := blob.OpenConfigured(a.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()

	long := time.Now().Add(-projectdb.MinOrphanAge - time.Hour)
	plant := func(project, rest string, old bool) string {
		t.Helper()

		key := "projects/" + project + rest
		path := filepath.Join(folder, key)
		_, err := blobs.Put(t.Context(), key, strings.NewReader("x"), 100)
		if old {
			err = errors.Join(err, os.Chtimes(path, time.Time{}, long))
		}

		if err != nil {
			t.Fatal(err)
		}

		return path
	}

	paused := a.CreateProject("paused")
	a.WithProject("").Post("/projects/"+paused+"/pause", ``).Want(200)
	restored := a.CreateProject("restored") // whose replaced database is kept
	a.Exec(`insert into platform.restores (uuid, backup_uuid, backup_project_uuid, project_uuid, target, status, kept_until, created_by)
		values (gen_random_uuid(), gen_random_uuid(), $1, $1, 'in_place', 'completed', now() + interval '1 day', $1)`,
		restored)

	id, gone, foreign := uuid.NewString(), a.CreateProject("gone"), uuid.NewString()
	a.Exec(`delete from platform.projects where uuid = $1`, gone)
	file := "/files/" + id[:2] + "/" + id

	removed := []string{
		plant(a.Project, file, true), plant(gone, file, true), plant(gone, "/backups/"+id+".dump", true),
		plant(paused, file, true),
	}

	other := uuid.NewString()
	young := "/files/" + other[:2] + "/" + other
	kept := []string{plant(a.Project, young, false), plant(gone, young, false), plant(paused, young, false),
		plant(restored, file, true), plant(a.Project, "/backups/"+id+".dump", true), plant("others", "/x", true),
		plant(foreign, file, true), plant(foreign, "/backups/"+id+".dump", true),
		plant(paused, "/backups/"+id+".dump", false),
		plant(paused, "/backups/content/"+strings.Repeat("a", 64), true)}

	secret, err := a.Config.LoadSecretKey()
	if err != nil {
		t.Fatal(err)
	}

	pool, err := pgxpool.New(t.Context(), string(a.Config.DatabaseURL))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	var said strings.Builder
	log := slog.New(slog.NewTextHandler(&said, nil))
	server, err := pg.PrimaryPoolConfig(string(a.Config.DatabaseURL), 1)
	if err != nil {
		t.Fatal(err)
	}

	registry := projectdb.NewRegistry(projectdb.Config{Server: server, Secret: secret,
		Names: a.Server.Projects().Names, Connections: 8, Log: log})

	q, err := queue.New(queue.Config{Pool: pool, Log: log})
	if err != nil {
		t.Fatal(err)
	}

	projects := lifecycle.New(lifecycle.Config{Store: platform.New(pool), Registry: registry, Blobs: blobs, Log: log})
	backups := backup.New(backup.Config{Lifecycle: projects, Queue: q, Log: log,
		Subjects: []projectdb.Subject{object.NewCleaner(registry, blobs, q, log).Subject()}})
	if err := backups.RemoveOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, path := range removed {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s was not removed: %v", path, err)
		}
	}

	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s was removed: %v", path, err)
		}
	}

	if !strings.Contains(said.String(), foreign) {
		t.Errorf("no log entry about the blobs of unknown project %s: %s", foreign, &said)
	}
}
