package transport

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strings"

	"github.com/mkesdk/mkesdk/transport/internal/script"
)

// verifyFrom is the size in bytes from which a file is read back on the host without
// being asked for.
const verifyFrom = 1 << 20

// FileOptions say how [WriteFile] leaves a file.
type FileOptions struct {
	Mode  fs.FileMode // permission bits, setuid, setgid and sticky; 0600 if zero
	Owner string      // user, user:group or :group, as chown takes it; root if empty

	// SHA256 is the digest, in hexadecimal, that the content must have. Content of other
	// digest is not put in place.
	SHA256 string

	// Size is how many bytes the content must have, if it is known. It is not needed.
	Size int64

	// Progress is called with the number of bytes that were sent so far, each time that some were.
	Progress func(done int64)
}

// WriteFile puts what it reads from r into a file of the host, as root. A reader of the
// file sees the old content or the new, never a part: the content goes to a temporary
// file beside it, ".<base>.mkesdk.<process>-<random>", that is flushed to the disk and
// then renamed. A symbolic link of that name is replaced. A file of 1 MiB or more, or
// with a SHA256 in o, is read back on the host before it takes the name. Content that
// ends early, because r fails or the connection does, changes nothing; what it leaves
// behind the next WriteFile of that file removes.
func WriteFile(ctx context.Context, c Conn, name string, r io.Reader, o FileOptions) error {
	fail := func(err error) error { return fmt.Errorf("write %s: %w", name, err) }
	if err := checkName("write", name); err != nil {
		return err
	}
	mode, err := o.check()
	if err != nil {
		return fail(err)
	}
	must := "0"
	if o.SHA256 != "" {
		must = "1"
	}
	token := strings.ToLower(rand.Text() + rand.Text())[:script.TokenSize]
	err = c.Run(ctx, Command{
		Args:  []string{"/bin/sh", "-c", script.Write, "sh", name, mode, o.Owner, token, must},
		Sudo:  true,
		Stdin: &content{r: r, o: o, token: token, sum: sha256.New()},
	})
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.Status == script.ExitNoParent {
		return fmt.Errorf("%s: %w", exit.Host, &fs.PathError{Op: "write", Path: name, Err: fmt.Errorf("its directory: %w", fs.ErrNotExist)})
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// check returns the mode as chmod takes it.
func (o FileOptions) check() (mode string, err error) {
	const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	var errs []error
	if o.Mode&^(fs.ModePerm|special) != 0 {
		errs = append(errs, fmt.Errorf("mode %v has more than permission bits", o.Mode))
	}
	if strings.HasPrefix(o.Owner, "-") || strings.ContainsAny(o.Owner, " \t\n\x00") {
		errs = append(errs, fmt.Errorf("owner %q is neither user, user:group nor :group", o.Owner))
	}
	if digest, err := hex.DecodeString(o.SHA256); err != nil || len(digest) != 0 && len(digest) != sha256.Size {
		errs = append(errs, fmt.Errorf("SHA256 %q is not %d hexadecimal digits", o.SHA256, 2*sha256.Size))
	}
	if o.Size < 0 {
		errs = append(errs, fmt.Errorf("size %d is negative", o.Size))
	}
	bits := uint32(o.Mode.Perm())
	if o.Mode == 0 {
		bits = 0o600
	}
	for _, s := range []struct {
		mode fs.FileMode
		bit  uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if o.Mode&s.mode != 0 {
			bits |= s.bit
		}
	}
	return fmt.Sprintf("%04o", bits), errors.Join(errs...)
}

// content is what is sent: what r has, then the token that says that this was all, and the digest.
type content struct {
	r     io.Reader
	o     FileOptions
	token string
	sum   hash.Hash
	n     int64
	end   io.Reader // after r has ended
}

func (c *content) Read(p []byte) (int, error) {
	if c.end != nil {
		return c.end.Read(p)
	}
	n, err := c.r.Read(p)
	c.sum.Write(p[:n])
	c.n += int64(n)
	if n > 0 && c.o.Progress != nil {
		c.o.Progress(c.n)
	}
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if err := c.finish(); err != nil {
		return n, err
	}
	return n, nil
}

// finish checks the content and makes what follows it.
func (c *content) finish() error {
	digest := hex.EncodeToString(c.sum.Sum(nil))
	if c.o.Size > 0 && c.n != c.o.Size {
		return fmt.Errorf("the content has %d bytes, want %d", c.n, c.o.Size)
	}
	if c.o.SHA256 != "" && !strings.EqualFold(digest, c.o.SHA256) {
		return fmt.Errorf("the content has SHA-256 %s, want %s", digest, c.o.SHA256)
	}
	if c.o.SHA256 == "" && c.n < verifyFrom {
		digest = script.NoDigest
	}
	c.end = strings.NewReader(c.token + digest)
	return nil
}
