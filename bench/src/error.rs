//! Why a benchmark did not finish.
//!
//! Owns: the error of this crate. A system that fails or is missing is a result, never an error.

/// Why a benchmark did not finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A file or process of the benchmark itself could not be used.
    #[error("{context}: {source}")]
    Io {
        /// What was being done.
        context: String,
        /// What the system answered.
        source: std::io::Error,
    },
    /// Data could not be generated or written.
    #[error("{context}: {source}")]
    Data {
        /// What was being done.
        context: String,
        /// What the library answered.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The request cannot be carried out; the text says what to change.
    #[error("{0}")]
    Setup(String),
}

/// Adds what was being done to an error, once, where it is known.
pub(crate) trait Context<T> {
    fn context(self, context: impl FnOnce() -> String) -> Result<T, BenchError>;
}

impl<T> Context<T> for Result<T, std::io::Error> {
    fn context(self, context: impl FnOnce() -> String) -> Result<T, BenchError> {
        self.map_err(|source| BenchError::Io {
            context: context(),
            source,
        })
    }
}

/// Wraps an error of a data library.
pub(crate) fn data_error<E: std::error::Error + Send + Sync + 'static>(
    context: &str,
) -> impl FnOnce(E) -> BenchError + '_ {
    move |source| BenchError::Data {
        context: context.to_owned(),
        source: Box::new(source),
    }
}
