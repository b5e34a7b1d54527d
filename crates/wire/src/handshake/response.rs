//! What clients say about themselves: the handshake response and COM_CHANGE_USER.

use crate::bytes_in::{Malformed, Reader};
use crate::flags::Capabilities;

type Result<T> = std::result::Result<T, Malformed>;

/// Length of the response's beginning, which is all that a request for TLS has.
const FIXED_BYTES: usize = 32;
/// Unused bytes of it.
const FILLER_BYTES: usize = 23;
/// Level of zstd if the client says none.
const ZSTD_LEVEL: u8 = 3;
/// The longest attributes that a client may send, as MySQL allows.
const ATTRIBUTES_BYTES_MAX: usize = 64 << 10;
/// Bytes of them that are kept: MySQL's `performance_schema_session_connect_attrs_size`. An
/// attribute takes many times its bytes, and as long as its connection lives.
const ATTRIBUTES_BYTES_KEPT: usize = 512;

/// Whether the client wants to go on under TLS before it says who it is.
pub(crate) fn is_ssl_request(packet: &[u8]) -> bool {
    let capabilities = Reader::new(packet).u32().map(Capabilities::from_bits);
    packet.len() <= FIXED_BYTES
        && capabilities.is_ok_and(|client| client.contains(Capabilities::SSL))
}

/// `Protocol::HandshakeResponse41`.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    pub(crate) capabilities: Capabilities,
    pub(crate) collation_id: u8,
    pub(crate) user: &'a [u8],
    pub(crate) answer: &'a [u8],
    pub(crate) database: Option<&'a [u8]>,
    pub(crate) method_name: Option<&'a [u8]>,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) zstd_level: u8,
}

impl<'a> Response<'a> {
    /// Reads the packet of a client that speaks the protocol of 4.1.
    pub(crate) fn parse(packet: &'a [u8], offered: Capabilities) -> Result<Response<'a>> {
        let mut reader = Reader::new(packet);
        let mut capabilities = Capabilities::from_bits(reader.u32()?);
        if !capabilities.contains(Capabilities::PROTOCOL_41) {
            return Err(Malformed);
        }
        let _max_packet_bytes = reader.u32()?;
        let collation_id = reader.u8()?;
        reader.bytes(FILLER_BYTES)?;
        // What the client says but was not offered does not hold, yet rules how its packet is
        // written.
        let user = reader.terminated_or_rest();
        let answer = if capabilities.contains(Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA) {
            reader.counted()?
        } else if capabilities.contains(Capabilities::SECURE_CONNECTION) {
            let len = reader.u8()?;
            reader.bytes(usize::from(len))?
        } else {
            reader.terminated_or_rest()
        };
        let database = capabilities
            .contains(Capabilities::CONNECT_WITH_DB)
            .then(|| reader.terminated_or_rest())
            .filter(|name| !name.is_empty());
        let (method_name, attributes) = read_method(&mut reader, capabilities)?;
        let zstd_level = match capabilities.contains(Capabilities::ZSTD_COMPRESSION_ALGORITHM) {
            true => reader.u8().unwrap_or(ZSTD_LEVEL),
            false => ZSTD_LEVEL,
        };
        if capabilities.contains(Capabilities::MULTI_STATEMENTS) {
            capabilities = capabilities | Capabilities::MULTI_RESULTS;
        }
        Ok(Response {
            capabilities: capabilities.and(offered),
            collation_id,
            user,
            answer,
            database,
            method_name,
            attributes,
            zstd_level,
        })
    }
}

type Method<'a> = (Option<&'a [u8]>, Vec<(String, String)>);

/// COM_CHANGE_USER.
#[derive(Debug)]
pub(crate) struct ChangeUser<'a> {
    pub(crate) user: &'a [u8],
    pub(crate) answer: &'a [u8],
    pub(crate) database: Option<&'a [u8]>,
    pub(crate) collation_id: Option<u16>,
    pub(crate) method_name: Option<&'a [u8]>,
    pub(crate) attributes: Vec<(String, String)>,
}

impl<'a> ChangeUser<'a> {
    /// Reads what follows the command's byte.
    pub(crate) fn parse(packet: &'a [u8], capabilities: Capabilities) -> Result<ChangeUser<'a>> {
        let mut reader = Reader::new(packet);
        let user = reader.terminated()?;
        let answer_len = reader.u8()?;
        let answer = reader.bytes(usize::from(answer_len))?;
        let database = Some(reader.terminated_or_rest()).filter(|name| !name.is_empty());
        let collation_id = reader.u16().ok();
        let (method_name, attributes) = read_method(&mut reader, capabilities)?;
        Ok(ChangeUser {
            user,
            answer,
            database,
            collation_id,
            method_name,
            attributes,
        })
    }
}

/// What both packets have in common: the name of the method, and the client's attributes.
fn read_method<'a>(reader: &mut Reader<'a>, capabilities: Capabilities) -> Result<Method<'a>> {
    let name = capabilities
        .contains(Capabilities::PLUGIN_AUTH)
        .then(|| reader.terminated_or_rest())
        .filter(|name| !name.is_empty());
    let attributes = match capabilities.contains(Capabilities::CONNECT_ATTRS) {
        true => read_attributes(reader)?,
        false => Vec::new(),
    };
    Ok((name, attributes))
}

fn read_attributes(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>> {
    let mut attributes = Vec::new();
    if reader.is_empty() {
        return Ok(attributes);
    }
    let bytes = reader.counted()?;
    if bytes.len() >= ATTRIBUTES_BYTES_MAX {
        return Err(Malformed);
    }
    let mut pairs = Reader::new(bytes);
    while !pairs.is_empty() {
        let (name, value) = (pairs.counted()?, pairs.counted()?);
        if bytes.len().saturating_sub(pairs.len()) <= ATTRIBUTES_BYTES_KEPT {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            attributes.push((text(name), text(value)));
        }
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;
    use crate::bytes_out::{put_bytes, put_terminated, put_u8, put_u32};

    fn begin(capabilities: Capabilities) -> BytesMut {
        let mut packet = BytesMut::new();
        put_u32(&mut packet, capabilities.bits());
        put_u32(&mut packet, 1 << 24);
        put_u8(&mut packet, 45);
        packet.extend_from_slice(&[0; FILLER_BYTES]);
        packet
    }

    #[test]
    fn a_whole_response_is_read() {
        let all = Capabilities::from_bits(u32::MAX);
        let mut packet = begin(all);
        put_terminated(&mut packet, b"root");
        put_bytes(&mut packet, b"answer");
        put_terminated(&mut packet, b"test");
        put_terminated(&mut packet, b"caching_sha2_password");
        let mut attributes = BytesMut::new();
        put_bytes(&mut attributes, b"_os");
        put_bytes(&mut attributes, b"Linux");
        put_bytes(&mut packet, &attributes);
        put_u8(&mut packet, 7);
        let response = Response::parse(&packet, all).expect("a response");
        assert_eq!(response.collation_id, 45);
        assert_eq!(response.user, b"root");
        assert_eq!(response.answer, b"answer");
        assert_eq!(response.database, Some(&b"test"[..]));
        assert_eq!(response.method_name, Some(&b"caching_sha2_password"[..]));
        assert_eq!(
            response.attributes,
            [("_os".to_owned(), "Linux".to_owned())]
        );
        assert_eq!(response.zstd_level, 7);
        for len in 0..packet.len() {
            // Whatever is cut off, this returns.
            let _any = Response::parse(&packet[..len], all);
        }
    }

    #[test]
    fn attributes_take_little_memory() {
        let capabilities = Capabilities::from_bits(u32::MAX);
        let change_user = |pairs: usize| {
            let mut packet = BytesMut::from(&b"root\0\0\0\xFF\0\0"[..]);
            let mut attributes = BytesMut::new();
            put_bytes(&mut attributes, b"_os");
            put_bytes(&mut attributes, b"Linux");
            // Names and values without a byte.
            attributes.resize(attributes.len() + 2 * pairs, 0);
            put_bytes(&mut packet, &attributes);
            let parsed = ChangeUser::parse(&packet, capabilities);
            parsed.map(|change_user| change_user.attributes)
        };
        let few = change_user(10).expect("attributes");
        assert_eq!(few.len(), 11);
        assert_eq!(few[0], ("_os".to_owned(), "Linux".to_owned()));
        let many = change_user(30_000).expect("attributes");
        assert_eq!(many[0], few[0]);
        assert!(many.len() <= ATTRIBUTES_BYTES_KEPT, "{}", many.len());
        assert!(change_user(1 << 20).is_err());
    }

    #[test]
    fn only_the_offered_holds() {
        let offered = Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION;
        let mut packet = begin(Capabilities::from_bits(u32::MAX));
        put_terminated(&mut packet, b"root");
        put_bytes(&mut packet, b"");
        let response = Response::parse(&packet, offered).expect("a response");
        assert_eq!(response.capabilities, offered);
    }

    #[test]
    fn older_protocols_are_refused() {
        assert!(Response::parse(&begin(Capabilities::SSL), Capabilities::SSL).is_err());
    }

    #[test]
    fn a_request_for_tls_is_short() {
        let packet = begin(Capabilities::SSL);
        assert!(is_ssl_request(&packet));
        assert!(!is_ssl_request(&begin(Capabilities::PROTOCOL_41)));
        assert!(!is_ssl_request(&[packet.as_ref(), b"root\0"].concat()));
        assert!(!is_ssl_request(b"abc"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            flags in any::<u32>(),
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let capabilities = Capabilities::from_bits(flags) | Capabilities::PROTOCOL_41;
            let mut packet = begin(capabilities);
            packet.extend_from_slice(&bytes);
            let _any = Response::parse(&packet, capabilities);
            let _any = Response::parse(&bytes, capabilities);
            let _any = ChangeUser::parse(&bytes, capabilities);
        }
    }
}
