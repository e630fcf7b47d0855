// Package script has the scripts that move files, which the fakes of transporttest have
// to know as well.
package script

import _ "embed"

// Read takes the name of a file. It writes one byte when the file is open, and then the file.
//
//go:embed read.sh
var Read string

// Write takes the name of a file, its mode, its owner or "", a token of TokenSize bytes,
// and whether a digest is required (1) or only wanted (0). It reads the content, the
// token and, in hexadecimal, the SHA-256 of the content, or dashes if it is not to be
// verified.
//
//go:embed write.sh
var Write string

// What the scripts exit with.
const (
	ExitNotExist  = 44 // no such file
	ExitDirectory = 45 // the target is a directory
	ExitCut       = 46 // the content ended early
	ExitDigest    = 47 // the content on the disk is not what was sent
	ExitNoDigest  = 48 // the host has nothing to compute a SHA-256 with
	ExitNoParent  = 49 // the directory of the target is not there
)

// TokenSize and DigestSize are the lengths of what follows the content.
const (
	TokenSize  = 32
	DigestSize = 64
)

// NoDigest stands for the digest of content that is not verified.
const NoDigest = "----------------------------------------------------------------"
