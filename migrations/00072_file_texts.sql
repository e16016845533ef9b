-- +goose Up

-- The text of PDFs, for models that do not read PDFs themselves. It is stored, so that a request to a
-- model can be rebuilt after the program that extracts texts has changed. It goes with the bytes.
CREATE TABLE file_texts (
    upload_id uuid PRIMARY KEY REFERENCES file_uploads ON DELETE CASCADE,
    text      text NOT NULL
);
