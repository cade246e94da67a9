package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A connection that only waits does not notice that its server is frozen, or that the network is
// cut: the kernel of a frozen machine goes on to acknowledge what it gets. Its locks and
// notifications are worth nothing then, since another server may have been promoted.
const (
	heartbeatInterval = 5 * time.Second // between two questions
	heartbeatTimeout  = 3 * time.Second // for the answer
)

// WaitForNotification waits for a notification as long as the server answers. Its failure means
// that the connection, and each lock that it held, is lost.
func WaitForNotification(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	return waitForNotification(ctx, conn, heartbeatInterval, heartbeatTimeout)
}

func waitForNotification(
	ctx context.Context, conn *pgx.Conn, interval, timeout time.Duration,
) (*pgconn.Notification, error) {
	for {
		waitCtx, cancel := context.WithTimeout(ctx, interval)
		n, err := conn.WaitForNotification(waitCtx)
		cancel()

		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return n, err
		}

		beatCtx, cancel := context.WithTimeout(ctx, timeout)
		err = conn.Ping(beatCtx)
		cancel()

		if err != nil {
			return nil, fmt.Errorf("no sign of life from the server: %w", err)
		}
	}
}
