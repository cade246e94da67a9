package backup

import (
	"context"

	"github.com/google/uuid"
)

// VerifyBackup verifies a backup as a restore does before it changes anything. It returns the
// reason that a failed restore has, or "".
func (s *Service) VerifyBackup(ctx context.Context, project, backup uuid.UUID) string {
	manifest, _, err := s.verifyBackup(ctx, project, backup)
	if err != nil {
		return restoreFailure(ctx, err)
	}

	manifest.Files.Close()
	return ""
}
