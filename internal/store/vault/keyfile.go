package vault

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// ReadPrivate reads a file of master keys. It rejects a file that its group can write, or
// that others can read or write.
func ReadPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s is open to others (mode %04o): chmod 600 %[1]s", path, mode)
	}
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

// MakeKeyFile writes a new key to a new file in its own directory, which only this user can enter.
// It never replaces a file.
func MakeKeyFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make a key file: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("make a key file: %w", err)
	}
	_, err = fmt.Fprintln(f, GenerateKey())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(fmt.Errorf("make a key file: %w", err), os.Remove(path))
	}
	return nil
}
