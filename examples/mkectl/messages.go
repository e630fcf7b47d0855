package main

import (
	"strings"

	"github.com/mkesdk/mkesdk/mke"
)

// messages takes err apart into one message for each thing that went wrong. What
// wraps several errors is said again before each of them.
func messages(err error) []string {
	text := err.Error()
	if p, ok := err.(*mke.PreflightError); ok {
		return strings.Split(p.Error(), "\n")
	}
	inner := unwrap(err)
	if len(inner) == 0 {
		return []string{text}
	}
	if text == joined(inner) && len(inner) > 1 {
		var all []string
		for _, e := range inner {
			all = append(all, messages(e)...)
		}
		return all
	}
	// What wraps an error ends, as a rule, in its text.
	last := inner[len(inner)-1]
	before, ok := strings.CutSuffix(text, last.Error())
	parts := messages(last)
	if !ok || len(parts) == 1 {
		return []string{text}
	}
	for i := range parts {
		parts[i] = before + parts[i]
	}
	return parts
}

// joined is what errors.Join makes of the texts.
func joined(errs []error) string {
	var texts []string
	for _, e := range errs {
		texts = append(texts, e.Error())
	}
	return strings.Join(texts, "\n")
}

// each calls f with err and everything in it.
func each(err error, f func(error)) {
	f(err)
	for _, e := range unwrap(err) {
		each(e, f)
	}
}

// unwrap returns what err wraps.
func unwrap(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return []error{cause}
		}
	}
	return nil
}
