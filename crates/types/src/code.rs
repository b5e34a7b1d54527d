//! The table of error numbers: one line an error, `{}` where an argument goes.
//!
//! **Source**: the texts of MySQL 8.4 (`share/messages_to_clients.txt`); where only MariaDB has
//! the error, MariaDB's number and text.

macro_rules! codes {
    ($($name:ident = $number:literal, $sqlstate:literal, $format:literal;)*) => {
        /// Every error that the engine can report.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $number, "`: ", $format)] $name,)*
        }

        impl ErrorCode {
            /// Every code, in the order of its number.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name),*];

            /// MySQL's number.
            pub const fn number(self) -> u16 {
                match self { $(ErrorCode::$name => $number,)* }
            }

            /// The SQLSTATE that goes with the number.
            pub const fn sqlstate(self) -> &'static str {
                match self { $(ErrorCode::$name => $sqlstate,)* }
            }

            /// The text, `{}` standing for each argument.
            pub const fn format(self) -> &'static str {
                match self { $(ErrorCode::$name => $format,)* }
            }
        }
    };
}

#[rustfmt::skip]
codes! {
    FileCreate = 1, "HY000", "Can't create/write to file '{}' (OS errno {} - {})";
    ClientFileNotFound = 2, "HY000", "File '{}' not found (OS errno {} - {})";
    WriteFile = 3, "HY000", "Error writing file '{}' (OS errno {} - {})";
    FileStat = 13, "HY000", "Can't get stat of '{}' (OS errno {} - {})";
    LocalTempSpaceFull = 41, "HY000", "Local temporary space limit reached";
    GlobalTempSpaceFull = 42, "HY000", "Global temporary space limit reached";
    Explained = 1003, "HY000", "{}";
    CantCreateTable = 1005, "HY000", "Can't create table '{}' (errno: {} - {})";
    DatabaseExists = 1007, "HY000", "Can't create database '{}'; database exists";
    DatabaseDropMissing = 1008, "HY000", "Can't drop database '{}'; database doesn't exist";
    FileNotFound = 1017, "HY000", "Can't find file: '{}' (errno: {} - {})";
    DiskFull = 1021, "HY000", "Disk full ({}); waiting for someone to free some space... (errno: {} - {})";
    FileRead = 1024, "HY000", "Error reading file '{}' (errno: {} - {})";
    FileWrite = 1026, "HY000", "Error writing file '{}' (errno: {} - {})";
    SortAborted = 1028, "HY000", "Sort aborted: {}";
    StorageEngine = 1030, "HY000", "Got error {} - '{}' from storage engine";
    OutOfMemory = 1037, "HY001", "Out of memory; restart server and try again (needed {} bytes)";
    OutOfSortMemory = 1038, "HY001", "Out of sort memory, consider increasing server sort buffer size";
    OutOfResources = 1041, "HY000", "Out of memory.";
    DatabaseAccessDenied = 1044, "42000", "Access denied for user '{}'@'{}' to database '{}'";
    AccessDenied = 1045, "28000", "Access denied for user '{}'@'{}' (using password: {})";
    NoDatabase = 1046, "3D000", "No database selected";
    ColumnNull = 1048, "23000", "Column '{}' cannot be null";
    UnknownDatabase = 1049, "42000", "Unknown database '{}'";
    TableExists = 1050, "42S01", "Table '{}' already exists";
    UnknownTable = 1051, "42S02", "Unknown table '{}'";
    AmbiguousColumn = 1052, "23000", "Column '{}' in {} is ambiguous";
    ServerShutdown = 1053, "08S01", "Server shutdown in progress";
    UnknownColumn = 1054, "42S22", "Unknown column '{}' in '{}'";
    NotInGroupBy = 1055, "42000", "Expression #{} of {} is not in GROUP BY clause and contains nonaggregated column '{}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by";
    CantGroupOn = 1056, "42000", "Can't group on '{}'";
    ColumnListCount = 1058, "21S01", "Column count doesn't match column list";
    IdentifierTooLong = 1059, "42000", "Identifier name '{}' is too long";
    DuplicateColumn = 1060, "42S21", "Duplicate column name '{}'";
    DuplicateKeyName = 1061, "42000", "Duplicate key name '{}'";
    DuplicateEntry = 1062, "23000", "Duplicate entry '{}' for key '{}'";
    ColumnSpecifier = 1063, "42000", "Incorrect column specifier for column '{}'";
    Syntax = 1064, "42000", "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{}' at line {}";
    EmptyQuery = 1065, "42000", "Query was empty";
    NotUniqueTable = 1066, "42000", "Not unique table/alias: '{}'";
    InvalidDefault = 1067, "42000", "Invalid default value for '{}'";
    MultiplePrimaryKeys = 1068, "42000", "Multiple primary key defined";
    TooManyKeys = 1069, "42000", "Too many keys specified; max {} keys allowed";
    TooManyKeyParts = 1070, "42000", "Too many key parts specified; max {} parts allowed";
    KeyTooLong = 1071, "42000", "Specified key was too long; max key length is {} bytes";
    KeyColumnMissing = 1072, "42000", "Key column '{}' doesn't exist in table";
    ColumnTooBig = 1074, "42000", "Column length too big for column '{}' (max = {}); use BLOB or TEXT instead";
    WrongAutoKey = 1075, "42000", "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    LoadSpecification = 1083, "42000", "Field separator argument is not what is expected; check the manual";
    FileReadable = 1085, "HY000", "The file '{}' must be in the database directory or be readable by all";
    FileExists = 1086, "HY000", "File '{}' already exists";
    WrongSubKey = 1089, "HY000", "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys";
    CantRemoveAllFields = 1090, "42000", "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    CantDropField = 1091, "42000", "Can't DROP '{}'; check that column/key exists";
    UpdateTableUsed = 1093, "HY000", "You can't specify target table '{}' for update in FROM clause";
    NoSuchThread = 1094, "HY000", "Unknown thread id: {}";
    KillDenied = 1095, "HY000", "You are not owner of thread {}";
    NoTablesUsed = 1096, "HY000", "No tables used";
    TooManyWords = 1097, "HY000", "Too many strings for column {} and SET";
    TableNotLockedForWrite = 1099, "HY000", "Table '{}' was locked with a READ lock and can't be updated";
    TableNotLocked = 1100, "HY000", "Table '{}' was not locked with LOCK TABLES";
    BlobDefault = 1101, "42000", "BLOB, TEXT, GEOMETRY or JSON column '{}' can't have a default value";
    WrongDatabaseName = 1102, "42000", "Incorrect database name '{}'";
    WrongTableName = 1103, "42000", "Incorrect table name '{}'";
    TooBigSelect = 1104, "42000", "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay";
    Unknown = 1105, "HY000", "Unknown error";
    WrongArgumentsToProcedure = 1107, "HY000", "Incorrect parameter count to procedure '{}'";
    UnknownTableIn = 1109, "42S02", "Unknown table '{}' in {}";
    ColumnTwice = 1110, "42000", "Column '{}' specified twice";
    InvalidGroupFunction = 1111, "HY000", "Invalid use of group function";
    TableMustHaveColumns = 1113, "42000", "A table must have at least 1 column";
    TableFull = 1114, "HY000", "The table '{}' is full";
    UnknownCharacterSet = 1115, "42000", "Unknown character set: '{}'";
    TooManyTables = 1116, "HY000", "Too many tables; MySQL can only use {} tables in a join";
    TooManyColumns = 1117, "HY000", "Too many columns";
    RowTooBig = 1118, "42000", "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {}. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
    CantCreateThread = 1135, "HY000", "Can't create a new thread (errno {}); if you are not out of available memory, you can consult the manual for a possible OS-dependent bug";
    ValueCount = 1136, "21S01", "Column count doesn't match value count at row {}";
    CantReopenTable = 1137, "HY000", "Can't reopen table: '{}'";
    InvalidUseOfNull = 1138, "22004", "Invalid use of NULL value";
    Regexp = 1139, "42000", "Got error '{}' from regexp";
    MixOfGroupAndColumns = 1140, "42000", "In aggregated query without GROUP BY, expression #{} of {} contains nonaggregated column '{}'; this is incompatible with sql_mode=only_full_group_by";
    TableAccessDenied = 1142, "42000", "{} command denied to user '{}'@'{}' for table '{}'";
    NoSuchTable = 1146, "42S02", "Table '{}.{}' doesn't exist";
    NotAllowedCommand = 1148, "42000", "The used command is not allowed with this MySQL version";
    PacketTooLarge = 1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes";
    TooLongString = 1162, "42000", "Result string is longer than 'max_allowed_packet' bytes";
    TableCantHandleBlob = 1163, "42000", "The used table type doesn't support BLOB/TEXT columns";
    TableCantHandleAutoIncrement = 1164, "42000", "The used table type doesn't support AUTO_INCREMENT columns";
    WrongColumnName = 1166, "42000", "Incorrect column name '{}'";
    BlobKeyWithoutLength = 1170, "42000", "BLOB/TEXT column '{}' used in key specification without a key length";
    PrimaryKeyNull = 1171, "42000", "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
    TooManyRows = 1172, "42000", "Result consisted of more than one row";
    UpdateWithoutKey = 1175, "HY000", "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column.";
    KeyDoesNotExist = 1176, "42000", "Key '{}' doesn't exist in table '{}'";
    DuringCommit = 1180, "HY000", "Got error {} - '{}' during COMMIT";
    UnknownSystemVariable = 1193, "HY000", "Unknown system variable '{}'";
    RollbackNonTransactional = 1196, "HY000", "Some non-transactional changed tables couldn't be rolled back";
    NotReplica = 1200, "HY000", "The server is not configured as replica; fix in config file or with CHANGE REPLICATION SOURCE TO";
    SetConstantsOnly = 1204, "HY000", "You may only use constant expressions with SET";
    LockWaitTimeout = 1205, "HY000", "Lock wait timeout exceeded; try restarting transaction";
    WrongArguments = 1210, "HY000", "Incorrect arguments to {}";
    Deadlock = 1213, "40001", "Deadlock found when trying to get lock; try restarting transaction";
    CannotAddForeignKey = 1215, "HY000", "Cannot add foreign key constraint";
    WrongUsage = 1221, "HY000", "Incorrect usage of {} and {}";
    ColumnsInUnion = 1222, "21000", "The used SELECT statements have a different number of columns";
    SpecificAccessDenied = 1227, "42000", "Access denied; you need (at least one of) the {} privilege(s) for this operation";
    LocalVariable = 1228, "HY000", "Variable '{}' is a SESSION variable and can't be used with SET GLOBAL";
    GlobalVariable = 1229, "HY000", "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL";
    NoDefaultForVariable = 1230, "42000", "Variable '{}' doesn't have a default value";
    WrongValueForVariable = 1231, "42000", "Variable '{}' can't be set to the value of '{}'";
    WrongTypeForVariable = 1232, "42000", "Incorrect argument type to variable '{}'";
    VariableWriteOnly = 1233, "HY000", "Variable '{}' can only be set, not read";
    CantUseOptionHere = 1234, "42000", "Incorrect usage/placement of '{}'";
    NotSupportedYet = 1235, "42000", "This version of MySQL doesn't yet support '{}'";
    ReadOnlyVariable = 1238, "HY000", "Variable '{}' is a {} variable";
    WrongForeignKey = 1239, "42000", "Incorrect foreign key definition for '{}': {}";
    OperandColumns = 1241, "21000", "Operand should contain {} column(s)";
    SubqueryRows = 1242, "21000", "Subquery returns more than 1 row";
    UnknownStatementHandler = 1243, "HY000", "Unknown prepared statement handler ({}) given to {}";
    IllegalReference = 1247, "42S22", "Reference '{}' not supported ({})";
    DerivedMustHaveAlias = 1248, "42000", "Every derived table must have its own alias";
    TablenameNotAllowed = 1250, "42000", "Table '{}' from one of the SELECTs cannot be used in {}";
    CollationCharacterSet = 1253, "42000", "COLLATION '{}' is not valid for CHARACTER SET '{}'";
    CutByGroupConcat = 1260, "HY000", "Row {} was cut by {}";
    TooFewRecords = 1261, "01000", "Row {} doesn't contain data for all columns";
    TooManyRecords = 1262, "01000", "Row {} was truncated; it contained more data than there were input columns";
    NullToNotNull = 1263, "22004", "Column set to default value; NULL supplied to NOT NULL column '{}' at row {}";
    OutOfRange = 1264, "22003", "Out of range value for column '{}' at row {}";
    DataTruncated = 1265, "01000", "Data truncated for column '{}' at row {}";
    MixOfCollations = 1267, "HY000", "Illegal mix of collations ({},{}) and ({},{}) for operation '{}'";
    UnknownCollation = 1273, "HY000", "Unknown collation: '{}'";
    WrongIndexName = 1280, "42000", "Incorrect index name '{}'";
    UnknownStorageEngine = 1286, "42000", "Unknown storage engine '{}'";
    DeprecatedSyntax = 1287, "HY000", "'{}' is deprecated and will be removed in a future release. Please use {} instead";
    NonUpdatableTable = 1288, "HY000", "The target table {} of the {} is not updatable";
    OptionPreventsStatement = 1290, "HY000", "The MySQL server is running with the {} option so it cannot execute this statement";
    DuplicatedValueInType = 1291, "HY000", "Column '{}' has duplicated value '{}' in {}";
    TruncatedValue = 1292, "22007", "Truncated incorrect {} value: '{}'";
    InvalidOnUpdate = 1294, "HY000", "Invalid ON UPDATE clause for '{}' column";
    NotPreparable = 1295, "HY000", "This command is not supported in the prepared statement protocol yet";
    UnknownTimeZone = 1298, "HY000", "Unknown or incorrect time zone: '{}'";
    InvalidCharacterString = 1300, "HY000", "Invalid {} character string: '{}'";
    ResultTooLarge = 1301, "HY000", "Result of {}() was larger than max_allowed_packet ({}) - truncated";
    NoSuchFunction = 1305, "42000", "{} {} does not exist";
    QueryInterrupted = 1317, "70100", "Query execution was interrupted";
    UndeclaredVariable = 1327, "42000", "Undeclared variable: {}";
    NoData = 1329, "02000", "No data - zero rows fetched, selected, or processed";
    ViewNotObject = 1347, "HY000", "'{}.{}' is not {}";
    NonUpdatableColumn = 1348, "HY000", "Column '{}' is not updatable";
    ViewSelectClause = 1350, "HY000", "View's SELECT contains a '{}' clause";
    ViewSelectVariable = 1351, "HY000", "View's SELECT contains a variable or parameter";
    ViewSelectTemporaryTable = 1352, "HY000", "View's SELECT refers to a temporary table '{}'";
    ViewWrongList = 1353, "HY000", "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts";
    ViewCannotMerge = 1354, "HY000", "View merge algorithm can't be used here for now (assumed undefined algorithm)";
    ViewInvalid = 1356, "HY000", "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them";
    NoSuchTrigger = 1360, "HY000", "Trigger does not exist";
    TriggerOnViewOrTemporary = 1361, "HY000", "Trigger's '{}' is a view or temporary table";
    NoDefaultForField = 1364, "HY000", "Field '{}' doesn't have a default value";
    DivisionByZero = 1365, "22012", "Division by 0";
    TruncatedWrongValueForField = 1366, "HY000", "Incorrect {} value: '{}' for column '{}' at row {}";
    IllegalValueForType = 1367, "22007", "Illegal {} value '{}' found during parsing";
    ViewCheckNotUpdatable = 1368, "HY000", "CHECK OPTION on non-updatable view '{}.{}'";
    ViewCheckFailed = 1369, "HY000", "CHECK OPTION failed '{}.{}'";
    ProcedureAccessDenied = 1370, "42000", "{} command denied to user '{}'@'{}' for routine '{}'";
    NoBinaryLogging = 1381, "HY000", "You are not using binary logging";
    TooManyParameters = 1390, "HY000", "Prepared statement contains too many placeholders";
    KeyPartZero = 1391, "HY000", "Key part '{}' length cannot be 0";
    ViewOfSeveralTables = 1393, "HY000", "Can not modify more than one base table through a join view '{}.{}'";
    ViewWithoutFieldList = 1394, "HY000", "Can not insert into join view '{}.{}' without fields list";
    ViewDeleteOfSeveralTables = 1395, "HY000", "Can not delete from join view '{}.{}'";
    DataTooLong = 1406, "22001", "Data too long for column '{}' at row {}";
    WrongValueForType = 1411, "HY000", "Incorrect {} value: '{}' for function {}";
    TableChanged = 1412, "HY000", "Table definition has changed, please retry transaction";
    CommitNotAllowed = 1422, "HY000", "Explicit or implicit commit is not allowed in stored function or trigger.";
    ViewNoDefault = 1423, "HY000", "Field of view '{}.{}' underlying table doesn't have a default value";
    TooBigScale = 1425, "42000", "Too big scale {} specified for column '{}'. Maximum is {}.";
    TooBigPrecision = 1426, "42000", "Too-big precision {} specified for '{}'. Maximum is {}.";
    ScaleAbovePrecision = 1427, "42000", "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{}').";
    StackOverrun = 1436, "HY000", "Thread stack overrun: the statement has a chain of operators or set operations that is too long";
    TooBigDisplayWidth = 1439, "42000", "Display width out of range for column '{}' (max = {})";
    DatetimeOverflow = 1441, "22008", "Datetime function: {} field overflow";
    ForbidSchemaChange = 1450, "HY000", "Changing schema from '{}' to '{}' is not allowed.";
    TooManyPrepared = 1461, "42000", "Can't create more than max_prepared_stmt_count statements (current value: {})";
    ViewRecursion = 1462, "HY000", "`{}`.`{}` contains view recursion";
    AutoIncrementFailed = 1467, "HY000", "Failed to read auto-increment value from storage engine";
    NonInsertableTable = 1471, "HY000", "The target table {} of the {} is not insertable-into";
    TooHighNesting = 1473, "HY000", "Too high level of nesting for select";
    AmbiguousFieldTerminator = 1475, "HY000", "First character of the FIELDS TERMINATED string is ambiguous; please use non-optional and non-empty FIELDS ENCLOSED BY";
    PartitionFunction = 1506, "HY000", "Partitioned tables do not support {}";
    WrongValue = 1525, "HY000", "Incorrect {} value: '{}'";
    NoSuchEvent = 1539, "HY000", "Unknown event '{}'";
    PartitionTemporary = 1562, "HY000", "Cannot create temporary table with partitions";
    TransactionCharacteristics = 1568, "25001", "Transaction characteristics can't be changed while a transaction is in progress";
    ParameterCount = 1582, "42000", "Incorrect parameter count in the call to native function '{}'";
    WrongParameters = 1583, "42000", "Incorrect parameters in the call to native function '{}'";
    TableCommentTooLong = 1628, "HY000", "Comment for table '{}' is too long (max = {})";
    FieldCommentTooLong = 1629, "HY000", "Comment for field '{}' is too long (max = {})";
    NoSuchFunctionChecked = 1630, "42000", "FUNCTION {} does not exist. Check the 'Function Name Parsing and Resolution' section in the Reference Manual";
    UnknownLocale = 1649, "HY000", "Unknown locale: '{}'";
    IndexCommentTooLong = 1688, "HY000", "Comment for index '{}' is too long (max = {})";
    ValueOutOfRange = 1690, "22003", "{} value is out of range in '{}'";
    PartitionOfNone = 1747, "HY000", "PARTITION () clause on non partitioned table";
    UnsupportedDdlInTransaction = 1751, "HY000", "The creation of some temporary tables could not be rolled back.";
    UnsupportedDropInTransaction = 1752, "HY000", "The dropping of some temporary tables could not be rolled back.";
    GtidUnsafeTemporaryTable = 1787, "HY000", "Statement violates GTID consistency: CREATE TEMPORARY TABLE and DROP TEMPORARY TABLE can only be executed outside transactional context. These statements are also not allowed in a function or trigger because functions and triggers are considered to be multi-statement transactions.";
    UnknownExplainFormat = 1791, "HY000", "Unknown EXPLAIN format name: '{}'";
    ReadOnlyTransaction = 1792, "25006", "Cannot execute statement in a READ ONLY transaction.";
    FulltextOnTemporaryTable = 1796, "HY000", "Cannot create FULLTEXT index on temporary InnoDB table";
    DuplicateIndex = 1831, "HY000", "Duplicate index `{}`. This is deprecated and will be disallowed in a future release";
    TempFileWrite = 1878, "HY000", "Temporary file write failure.";
    NotInDistinct = 3065, "HY000", "Expression #{} of {} is not in SELECT list, references column '{}' which is not in SELECT list; this is incompatible with {}";
    QueryTimeout = 3024, "HY000", "Query execution was interrupted, maximum statement execution time exceeded";
    NoSuchChannel = 3074, "HY000", "Replica channel '{}' does not exist.";
    ReplicaStopped = 3084, "HY000", "Replication thread(s) for channel '{}' are already stopped.";
    GeneratedFunction = 3102, "HY000", "Expression of generated column '{}' contains a disallowed function.";
    GeneratedValueIgnored = 1906, "HY000", "The value specified for generated column '{}' in table '{}' has been ignored";
    GeneratedValue = 3105, "HY000", "The value specified for generated column '{}' in table '{}' is not allowed.";
    UnsupportedOnGenerated = 3106, "HY000", "'{}' is not supported for generated columns.";
    GeneratedNotPrior = 3107, "HY000", "Generated column can refer only to generated columns defined prior to it.";
    GeneratedColumnDependency = 3108, "HY000", "Column '{}' has a generated column dependency.";
    GeneratedAutoIncrement = 3109, "HY000", "Generated column '{}' cannot refer to auto-increment column.";
    UserLockWrongName = 3057, "42000", "Incorrect user-level lock name '{}'. The name is empty, NULL, or can not be expressed in the current character-set.";
    UserLockDeadlock = 3058, "HY000", "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting lock acquisition.";
    InvalidJsonText = 3140, "22032", "Invalid JSON text: \"{}\" at position {} in value for column '{}'.";
    InvalidJsonArgument = 3141, "22032", "Invalid JSON text in argument {} to function {}: \"{}\" at position {}.";
    InvalidJsonPath = 3143, "42000", "Invalid JSON path expression. The error is around character position {}.";
    JsonUsedAsKey = 3152, "42000", "JSON column '{}' supports indexing only via generated columns on a specified JSON path.";
    JsonTooDeep = 3157, "22032", "The JSON document exceeds the maximum depth.";
    NullInJsonKey = 3158, "22032", "JSON documents may not contain NULL member names.";
    RecursionWithoutUnion = 3573, "HY000", "Recursive Common Table Expression '{}' should contain a UNION";
    RecursionWithoutStart = 3574, "HY000", "Recursive Common Table Expression '{}' should have one or more non-recursive query blocks followed by one or more recursive ones";
    RecursionAggregates = 3575, "HY000", "Recursive Common Table Expression '{}' can contain neither aggregation nor window functions in recursive query block";
    RecursionOuterJoin = 3576, "HY000", "In recursive query block of Recursive Common Table Expression '{}', the recursive table must neither be in the right argument of a LEFT JOIN, nor be forced to be non-first with join order hints";
    RecursionNamedOnce = 3577, "HY000", "In recursive query block of Recursive Common Table Expression '{}', the recursive table must be referenced only once, and not in any subquery";
    GroupingNotInGroupBy = 3602, "HY000", "Argument {} of GROUPING function is not in GROUP BY";
    RecursiveQueryAborted = 3636, "HY000", "Recursive query aborted after {} iterations. Try increasing @@cte_max_recursion_depth to a larger value.";
    RegexpIllegalArgument = 3685, "HY000", "Illegal argument to a regular expression.";
    RegexpMismatchedParen = 3691, "HY000", "Mismatched parenthesis in regular expression.";
    RegexpUnterminatedBracket = 3696, "HY000", "The regular expression contains an unclosed bracket expression.";
    GeneratedNamedFunction = 3763, "HY000", "Expression of generated column '{}' contains a disallowed function: {}.";
    GeneratedRow = 3764, "HY000", "Expression of generated column '{}' cannot refer to a row value.";
    GeneratedVariable = 3765, "HY000", "Expression of generated column '{}' cannot refer user or system variables.";
    DefaultNotPrior = 3767, "HY000", "Default value expression of column '{}' cannot refer to a column defined after it if that column is a generated column or has an expression as default value.";
    DefaultAutoIncrement = 3768, "HY000", "Default value expression of column '{}' cannot refer to an auto-increment column.";
    DefaultFunction = 3769, "HY000", "Default value expression of column '{}' contains a disallowed function.";
    DefaultRow = 3771, "HY000", "Default value expression of column '{}' cannot refer to a row value.";
    DefaultVariable = 3772, "HY000", "Default value expression of column '{}' cannot refer user or system variables.";
    CheckNotBoolean = 3812, "HY000", "An expression of non-boolean type specified to a check constraint '{}'.";
    CheckOtherColumn = 3813, "HY000", "Column check constraint '{}' references other column.";
    CheckNamedFunction = 3814, "HY000", "An expression of a check constraint '{}' contains disallowed function: {}.";
    CheckFunction = 3815, "HY000", "An expression of a check constraint '{}' contains disallowed function.";
    CheckVariable = 3816, "HY000", "An expression of a check constraint '{}' cannot refer to a user or system variable.";
    CheckRow = 3817, "HY000", "Check constraint '{}' cannot refer to a row value.";
    CheckAutoIncrement = 3818, "HY000", "Check constraint '{}' cannot refer to an auto-increment column.";
    CheckViolated = 3819, "HY000", "Check constraint '{}' is violated.";
    CheckUnknownColumn = 3820, "HY000", "Check constraint '{}' refers to non-existing column '{}'.";
    CheckNotFound = 3821, "HY000", "Check constraint '{}' is not found in the table.";
    DuplicateCheckName = 3822, "HY000", "Duplicate check constraint name '{}'.";
    NoSuchWindow = 3579, "HY000", "Window name '{}' is not defined.";
    WindowCircular = 3580, "HY000", "There is a circularity in the window dependency graph.";
    WindowNoPartition = 3581, "HY000", "A window which depends on another cannot define partitioning.";
    WindowNoInheritFrame = 3582, "HY000", "Window '{}' has a frame definition, so cannot be referenced by another window.";
    WindowNoRedefineOrder = 3583, "HY000", "Window '{}' cannot inherit '{}' since both contain an ORDER BY clause.";
    WindowFrameStart = 3584, "HY000", "Window '{}': frame start cannot be UNBOUNDED FOLLOWING.";
    WindowFrameEnd = 3585, "HY000", "Window '{}': frame end cannot be UNBOUNDED PRECEDING.";
    WindowFrame = 3586, "HY000", "Window '{}': frame start or end is negative, NULL or of non-integral type";
    WindowDuplicateName = 3591, "HY000", "Window '{}' is defined twice.";
    WindowNotAllowed = 3593, "HY000", "You cannot use the window function '{}' in this context.'";
    WindowAliasNotAllowed = 3594, "HY000", "You cannot use the alias '{}' of an expression containing a window function in this context.'";
    NestedWindow = 3595, "HY000", "You cannot nest a window function in the specification of window '{}'.";
    WindowRangeKey = 3587, "HY000", "Window '{}' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY expression, of numeric or temporal type";
    WindowRangeTemporal = 3588, "HY000", "Window '{}' with RANGE frame has ORDER BY expression of datetime type. Only INTERVAL bound value allowed.";
    WindowRangeNumeric = 3589, "HY000", "Window '{}' with RANGE frame has ORDER BY expression of numeric type, INTERVAL bound value not allowed.";
    WindowRowsInterval = 3596, "HY000", "Window '{}': INTERVAL can only be used with RANGE frames.";
    LocalInfileDisabled = 3948, "42000", "Loading local data is disabled; this must be enabled on both the client and server sides";
    ConstraintNotFound = 3940, "HY000", "Constraint '{}' does not exist.";
    CheckColumnDependency = 3959, "HY000", "Check constraint '{}' uses column '{}', hence column cannot be dropped or renamed.";
    UserLockLongName = 4163, "42000", "User-level lock name '{}' should not exceed 64 characters.";
    NoVisibleColumn = 4028, "HY000", "A table must have at least one visible column.";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::ErrorCode;

    #[test]
    fn numbers_are_unique_and_states_have_five_characters() {
        let mut seen = HashSet::new();
        for code in ErrorCode::ALL {
            assert!(seen.insert(code.number()), "{code:?} repeats its number");
            assert_eq!(code.sqlstate().len(), 5, "{code:?}");
            assert_eq!(
                code.format().matches('{').count(),
                code.format().matches("{}").count()
            );
        }
    }
}
