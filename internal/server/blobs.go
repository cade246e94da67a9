package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/config"
)

const storageCheckTimeout = 10 * time.Second // storage check at start

// openBlobs opens the storage. It sweeps leftovers in a local folder, which no other server writes
// to. Invalid settings are an error; an unreachable service is not, since it can come back.
func openBlobs(ctx context.Context, c config.Config, log *slog.Logger) (*blob.Store, error) {
	blobs, err := blob.OpenConfigured(c)
	if err != nil {
		return nil, err
	}

	checking, cancel := context.WithTimeout(ctx, storageCheckTimeout)
	defer cancel()

	if err := blobs.Check(checking); err != nil {
		if mistake, ok := errors.AsType[*blob.ConfigError](err); ok {
			return blobs, fmt.Errorf("storage: %w", mistake)
		}
		log.Warn("storage unavailable", "error", err)
	}

	if c.StorageURL == "" {
		if _, err := blobs.Sweep(ctx, 0); err != nil {
			return blobs, err
		}
	}

	return blobs, nil
}
