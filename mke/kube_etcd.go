package mke

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"path"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/mkesdk/mkesdk/etcdverify"
	"github.com/mkesdk/mkesdk/transport"
)

// etcdClientAddr is where every member of a k0s cluster serves its clients: on its own
// loopback, and nowhere else.
const etcdClientAddr = "127.0.0.1:2379"

// etcdCall bounds each question to a member.
const etcdCall = 5 * time.Second

// sshEtcd is [Etcd] through the SSH connection to a control plane host.
type sshEtcd struct{}

// Evidence asks the member on the host. An error is about the way there: the files of
// the client that could not be read, or the connection to the host. A member that does
// not answer is evidence.
func (sshEtcd) Evidence(ctx context.Context, c transport.Conn, dataDir string) (etcdverify.Evidence, error) {
	q := &etcdQuestions{conn: c, evidence: etcdverify.Evidence{At: time.Now(), Via: c.String()}}
	config, err := etcdTLS(ctx, c, dataDir)
	if err != nil {
		return q.evidence, fmt.Errorf("reading the files of the etcd client: %w", err)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + etcdClientAddr}, TLS: config,
		Context: ctx, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(q.dial)},
	})
	if err != nil {
		return q.evidence, fmt.Errorf("making an etcd client: %w", err)
	}
	defer client.Close()
	q.ask(ctx, client)
	if ctx.Err() != nil {
		return q.evidence, fmt.Errorf("asking etcd on %s: %w", c, context.Cause(ctx))
	}
	if q.lost != nil {
		return q.evidence, fmt.Errorf("asking etcd on %s: %w", c, q.lost)
	}
	return q.evidence, nil
}

// etcdTLS reads what k0s gives its API server to be etcd's client. The key is kept in
// memory, and goes nowhere.
func etcdTLS(ctx context.Context, c transport.Conn, dataDir string) (*tls.Config, error) {
	var files [3][]byte
	var errs []error
	for i, name := range [...]string{"etcd/ca.crt", "apiserver-etcd-client.crt", "apiserver-etcd-client.key"} {
		data, err := transport.ReadFile(ctx, c, path.Join(dataDir, "pki", name))
		files[i] = data
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(files[0]) {
		return nil, fmt.Errorf("%s: %s holds no certificate", c, path.Join(dataDir, "pki/etcd/ca.crt"))
	}
	own, err := tls.X509KeyPair(files[1], files[2])
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", c, path.Join(dataDir, "pki/apiserver-etcd-client.crt"), err)
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}, nil
}

// etcdQuestions gathers what one member answers.
type etcdQuestions struct {
	conn     transport.Conn
	evidence etcdverify.Evidence
	health   etcdverify.Health

	mu      sync.Mutex
	refused error // why the member could not be reached on its host, the last time
	lost    error // why its host could not be reached
}

// dial opens a connection to the member, wherever grpc thinks it is.
func (q *etcdQuestions) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := q.conn.Dial(ctx, "tcp", etcdClientAddr)
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil {
		q.refused = nil
		return conn, nil
	}
	if errors.Is(err, transport.ErrConnectionLost) || errors.Is(err, net.ErrClosed) {
		q.lost = err
	}
	if ctx.Err() == nil {
		q.refused = err
	}
	return nil, err
}

// ask asks everything, side by side: a question that hangs for want of a quorum does
// not keep the others from being answered in their own time.
func (q *etcdQuestions) ask(ctx context.Context, client *clientv3.Client) {
	e, h := &q.evidence, &q.health
	h.Host = e.Via
	var wg sync.WaitGroup
	for _, question := range []struct {
		failed *string
		ask    func(context.Context) error
	}{
		{&e.ListError, func(ctx context.Context) error {
			list, err := client.MemberList(ctx) // linearizable unless asked otherwise
			if err != nil {
				return err
			}
			e.ClusterID = list.Header.GetClusterId()
			for _, m := range list.Members {
				e.Members = append(e.Members, etcdverify.Member{
					ID: m.ID, Name: m.Name, PeerURLs: m.PeerURLs,
					Started: etcdverify.TriOf(m.Name != ""), Learner: etcdverify.TriOf(m.IsLearner),
				})
			}
			return nil
		}},
		{&e.AlarmError, func(ctx context.Context) error {
			alarms, err := client.AlarmList(ctx)
			if err != nil {
				return err
			}
			e.AlarmsKnown = true
			for _, a := range alarms.Alarms {
				e.Alarms = append(e.Alarms, etcdverify.Alarm{MemberID: a.MemberID, Type: a.Alarm.String()})
			}
			return nil
		}},
		{&h.ReadError, func(ctx context.Context) error {
			_, err := client.Get(ctx, "mkesdk", clientv3.WithCountOnly()) // linearizable unless asked otherwise; the key need not exist
			h.Read = err == nil
			return err
		}},
		{&h.StatusError, func(ctx context.Context) error {
			s, err := client.Status(ctx, "https://"+etcdClientAddr)
			if err != nil {
				return err
			}
			h.Answered = true
			h.MemberID, h.ClusterID = s.Header.GetMemberId(), s.Header.GetClusterId()
			h.Leader, h.Learner, h.Version, h.Errors = s.Leader, s.IsLearner, s.Version, s.Errors
			h.RaftIndex, h.RaftAppliedIndex = s.RaftIndex, s.RaftAppliedIndex
			h.DBSize, h.DBSizeInUse, h.DBQuota = s.DbSize, s.DbSizeInUse, s.DbSizeQuota
			return nil
		}},
	} {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, etcdCall)
			defer cancel()
			if err := question.ask(ctx); err != nil {
				*question.failed = q.why(ctx, err)
			}
		})
	}
	wg.Wait()
	e.Health = []etcdverify.Health{*h}
}

// why says why a question was not answered. What grpc makes of a connection that is
// refused says less than the refusal.
func (q *etcdQuestions) why(ctx context.Context, err error) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.refused != nil:
		return q.refused.Error()
	case ctx.Err() != nil:
		return fmt.Sprintf("no answer within %s", etcdCall)
	}
	return err.Error()
}
