package server_test

import (
	"os"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestResumableObjects has end users upload objects in parts by tus-js-client, under policies.
func TestResumableObjects(t *testing.T) {
	t.Parallel()

	s := titlesProject{API: apitest.Shared(t), t: t}
	s.Post("/containers", `{"name":"avatars"}`).Want(201)
	owner := s.Server.Projects().Open(uuid.MustParse(s.Project)).Owner()
	if _, err := owner.Exec(t.Context(), storagePolicies); err != nil {
		t.Fatal(err)
	}

	runNode(t, clients, append(os.Environ(), "SOCLE_PROJECT="+s.URL+"/projects/"+s.Project,
		"SOCLE_PUBLISHABLE="+s.key("browser", "publishable"), "SOCLE_SECRET="+s.key("server", "secret")),
		"tusobjects.mjs")
}
