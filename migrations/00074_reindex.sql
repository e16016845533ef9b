-- +goose Up

-- Documents with such characters are indexed again.
UPDATE documents SET indexed = 0
WHERE indexed = version AND octet_length(content) + octet_length(path) > length(content) + length(path)
  AND split_runs(plain_words(path || ' ' || content), true) <> plain_words(path || ' ' || content);
