// A program stores, lists, copies and removes objects by Amazon's client, with each checksum and streamed bodies.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import {
	S3Client, CreateBucketCommand, PutObjectCommand, GetObjectCommand, HeadObjectCommand, ListObjectsV2Command,
	CopyObjectCommand, DeleteObjectsCommand, CreateMultipartUploadCommand, UploadPartCommand, CompleteMultipartUploadCommand,
} from '@aws-sdk/client-s3'

const { SOCLE_S3: endpoint, SOCLE_KEY: accessKeyId, SOCLE_SECRET: secretAccessKey } = process.env
const client = new S3Client({ endpoint, region: 'local', forcePathStyle: true, maxAttempts: 1, credentials: { accessKeyId, secretAccessKey } })
const Bucket = 'files'
const text = async Key => (await client.send(new GetObjectCommand({ Bucket, Key }))).Body.transformToString()

await client.send(new CreateBucketCommand({ Bucket }))

for (const ChecksumAlgorithm of ['CRC32', 'CRC32C', 'SHA1', 'SHA256']) {
	const Key = `sums/${ChecksumAlgorithm} é`
	await client.send(new PutObjectCommand({ Bucket, Key, Body: 'text', ChecksumAlgorithm }))
	assert.equal(await text(Key), 'text')
}

const body = Buffer.alloc(300_000, 'x')
await client.send(new PutObjectCommand({ Bucket, Key: 'stream', Body: Readable.from([body]), ContentLength: body.length }))
assert.equal((await text('stream')).length, body.length)

await assert.rejects(client.send(new PutObjectCommand({ Bucket, Key: 'bad', Body: 'text', ChecksumCRC32: 'AAAAAA==' })), { name: 'BadDigest' })
await assert.rejects(text('bad'), { name: 'NoSuchKey' })

const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'parts' }))
const Parts = []
for (const [i, Body] of [Buffer.alloc(5 << 20, 'a'), Buffer.from('b')].entries()) {
	const { ETag } = await client.send(new UploadPartCommand({ Bucket, Key: 'parts', UploadId, PartNumber: i + 1, Body }))
	Parts.push({ PartNumber: i + 1, ETag })
}
await client.send(new CompleteMultipartUploadCommand({ Bucket, Key: 'parts', UploadId, MultipartUpload: { Parts } }))
assert.equal((await client.send(new HeadObjectCommand({ Bucket, Key: 'parts' }))).ContentLength, (5 << 20) + 1)

await client.send(new CopyObjectCommand({ Bucket, Key: 'copy', CopySource: `${Bucket}/stream`, MetadataDirective: 'REPLACE', Metadata: { a: 'b' } }))
assert.deepEqual((await client.send(new HeadObjectCommand({ Bucket, Key: 'copy' }))).Metadata, { a: 'b' })

const listed = await client.send(new ListObjectsV2Command({ Bucket, Delimiter: '/' }))
assert.deepEqual(listed.Contents.map(o => o.Key), ['copy', 'parts', 'stream'])
assert.deepEqual(listed.CommonPrefixes, [{ Prefix: 'sums/' }])

const gone = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: listed.Contents.map(({ Key }) => ({ Key })) } }))
assert.equal(gone.Deleted.length, 3)
