create table notes (
  id bigint generated always as identity primary key,
  owner uuid not null default auth.uid() references auth.users on delete cascade,
  body text not null check (length(body) between 1 and 500),
  created_at timestamptz not null default now()
);
create index on notes (owner, created_at);

create policy own on notes to authenticated using (owner = (select auth.uid())) with check (owner = (select auth.uid()));
grant select, insert, delete on notes to authenticated;

-- Everybody sees an avatar by its address. Users write in the folder that has their id as its name.
create policy read_own on storage.objects for select to authenticated
  using (bucket_id = 'avatars' and (storage.foldername(name))[1] = (select auth.uid()::text));
create policy add_own on storage.objects for insert to authenticated
  with check (bucket_id = 'avatars' and (storage.foldername(name))[1] = (select auth.uid()::text));
create policy replace_own on storage.objects for update to authenticated
  using (bucket_id = 'avatars' and (storage.foldername(name))[1] = (select auth.uid()::text));
