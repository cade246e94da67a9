-- migrate:up
create table books (id int primary key, author int not null references authors (id));

-- migrate:down
drop table books;
