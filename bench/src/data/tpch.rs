//! All eight tables of TPC-H, made by the `tpchgen` crates.
//!
//! Owns: their files (Parquet for all, tab-separated text for MariaDB) and their MySQL types.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::record_batch::RecordBatchReader;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

use super::{Dataset, Named, row_count, write_parquet, write_tsv};
use crate::error::{BenchError, data_error};

/// A table of the schema.
struct Table {
    name: &'static str,
    columns: &'static str,
    primary_key: &'static str,
    /// Bytes of a row as the specification estimates them (4.2.5).
    row_bytes: u64,
}

const TABLES: [Table; 8] = [
    Table {
        name: "region",
        columns: "r_regionkey BIGINT NOT NULL, r_name CHAR(25) NOT NULL, \
                  r_comment VARCHAR(152) NOT NULL",
        primary_key: "r_regionkey",
        row_bytes: 124,
    },
    Table {
        name: "nation",
        columns: "n_nationkey BIGINT NOT NULL, n_name CHAR(25) NOT NULL, \
                  n_regionkey BIGINT NOT NULL, n_comment VARCHAR(152) NOT NULL",
        primary_key: "n_nationkey",
        row_bytes: 128,
    },
    Table {
        name: "supplier",
        columns: "s_suppkey BIGINT NOT NULL, s_name CHAR(25) NOT NULL, \
                  s_address VARCHAR(40) NOT NULL, s_nationkey BIGINT NOT NULL, \
                  s_phone CHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL, \
                  s_comment VARCHAR(101) NOT NULL",
        primary_key: "s_suppkey",
        row_bytes: 159,
    },
    Table {
        name: "part",
        columns: "p_partkey BIGINT NOT NULL, p_name VARCHAR(55) NOT NULL, \
                  p_mfgr CHAR(25) NOT NULL, p_brand CHAR(10) NOT NULL, \
                  p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL, \
                  p_container CHAR(10) NOT NULL, p_retailprice DECIMAL(15,2) NOT NULL, \
                  p_comment VARCHAR(23) NOT NULL",
        primary_key: "p_partkey",
        row_bytes: 155,
    },
    Table {
        name: "partsupp",
        columns: "ps_partkey BIGINT NOT NULL, ps_suppkey BIGINT NOT NULL, \
                  ps_availqty INT NOT NULL, ps_supplycost DECIMAL(15,2) NOT NULL, \
                  ps_comment VARCHAR(199) NOT NULL",
        primary_key: "ps_partkey, ps_suppkey",
        row_bytes: 144,
    },
    Table {
        name: "customer",
        columns: "c_custkey BIGINT NOT NULL, c_name VARCHAR(25) NOT NULL, \
                  c_address VARCHAR(40) NOT NULL, c_nationkey BIGINT NOT NULL, \
                  c_phone CHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, \
                  c_mktsegment CHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL",
        primary_key: "c_custkey",
        row_bytes: 179,
    },
    Table {
        name: "orders",
        columns: "o_orderkey BIGINT NOT NULL, o_custkey BIGINT NOT NULL, \
                  o_orderstatus CHAR(1) NOT NULL, o_totalprice DECIMAL(15,2) NOT NULL, \
                  o_orderdate DATE NOT NULL, o_orderpriority CHAR(15) NOT NULL, \
                  o_clerk CHAR(15) NOT NULL, o_shippriority INT NOT NULL, \
                  o_comment VARCHAR(79) NOT NULL",
        primary_key: "o_orderkey",
        row_bytes: 104,
    },
    Table {
        name: "lineitem",
        columns: "l_orderkey BIGINT NOT NULL, l_partkey BIGINT NOT NULL, \
                  l_suppkey BIGINT NOT NULL, l_linenumber INT NOT NULL, \
                  l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, \
                  l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL, \
                  l_returnflag CHAR(1) NOT NULL, l_linestatus CHAR(1) NOT NULL, \
                  l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, \
                  l_receiptdate DATE NOT NULL, l_shipinstruct CHAR(25) NOT NULL, \
                  l_shipmode CHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL",
        primary_key: "l_orderkey, l_linenumber",
        row_bytes: 112,
    },
];

/// The database at a scale factor, every table under its own name; with text files when asked.
pub(crate) fn database(cache: &Path, scale: f64, with_tsv: bool) -> Result<Vec<Named>, BenchError> {
    TABLES
        .iter()
        .map(|table| {
            // The name that `groupings` gives its lineitem: the bytes are the same.
            let parquet = cache.join(format!("{}-sf{scale}.parquet", table.name));
            let tsv = cache.join(format!("{}-sf{scale}.tsv", table.name));
            let tsv = with_tsv.then_some(tsv);
            generate(table.name, scale, &parquet, tsv.as_ref())?;
            let rows = row_count(&parquet)?;
            let dataset = Dataset {
                table: format!("tpch_{}_{}", table.name, scale).replace('.', "_"),
                parquet,
                tsv,
                columns: table.columns.to_owned(),
                primary_key: Some(table.primary_key),
                rows,
                bytes: rows * table.row_bytes,
            };
            Ok(Named::new(table.name, &dataset))
        })
        .collect()
}

fn generate(
    name: &str,
    scale: f64,
    parquet: &Path,
    tsv: Option<&PathBuf>,
) -> Result<(), BenchError> {
    macro_rules! write {
        ($generator:ident, $arrow:ident) => {{
            let batches = $arrow::new($generator::new(scale, 1, 1)).with_batch_size(8192);
            write_table(parquet, batches)?;
            match tsv {
                Some(tsv) => write_lines(tsv, $generator::new(scale, 1, 1).iter()),
                None => Ok(()),
            }
        }};
    }
    match name {
        "region" => write!(RegionGenerator, RegionArrow),
        "nation" => write!(NationGenerator, NationArrow),
        "supplier" => write!(SupplierGenerator, SupplierArrow),
        "part" => write!(PartGenerator, PartArrow),
        "partsupp" => write!(PartSuppGenerator, PartSuppArrow),
        "customer" => write!(CustomerGenerator, CustomerArrow),
        "orders" => write!(OrderGenerator, OrderArrow),
        _ => write!(LineItemGenerator, LineItemArrow),
    }
}

fn write_table(parquet: &Path, batches: impl RecordBatchReader) -> Result<(), BenchError> {
    let schema = batches.schema();
    let batches = batches.map(|batch| batch.map_err(data_error("building a table of TPC-H")));
    write_parquet(parquet, &schema, batches)
}

/// Writes rows that show themselves as `a|b|`, the form of TPC-H's own generator.
fn write_lines(tsv: &Path, rows: impl Iterator<Item: Display>) -> Result<(), BenchError> {
    write_tsv(tsv, |file| {
        for row in rows {
            let line = row.to_string();
            writeln!(file, "{}", line.trim_end_matches('|').replace('|', "\t"))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cardinalities of scale factor 1 (4.2.5).
    const ROWS: [(&str, u64); 8] = [
        ("region", 5),
        ("nation", 25),
        ("supplier", 10_000),
        ("part", 200_000),
        ("partsupp", 800_000),
        ("customer", 150_000),
        ("orders", 1_500_000),
        ("lineitem", 6_001_215),
    ];

    #[test]
    fn a_scale_factor_is_about_a_gigabyte() {
        let mut bytes = 0;
        for (table, (name, rows)) in TABLES.iter().zip(ROWS) {
            assert_eq!(table.name, name);
            bytes += rows * table.row_bytes;
        }
        assert!((900_000_000..1_100_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn every_column_of_the_files_has_a_type() {
        let schemas = [
            RegionArrow::schema_ref(),
            NationArrow::schema_ref(),
            SupplierArrow::schema_ref(),
            PartArrow::schema_ref(),
            PartSuppArrow::schema_ref(),
            CustomerArrow::schema_ref(),
            OrderArrow::schema_ref(),
            LineItemArrow::schema_ref(),
        ];
        for (table, schema) in TABLES.iter().zip(schemas) {
            let declared: Vec<&str> = table
                .columns
                .split(" NOT NULL")
                .filter_map(|column| column.trim_start_matches(", ").split(' ').next())
                .filter(|name| !name.is_empty())
                .collect();
            let found: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            assert_eq!(declared, found, "{}", table.name);
            for key in table.primary_key.split(", ") {
                assert!(found.contains(&key), "{key}");
            }
        }
    }
}
